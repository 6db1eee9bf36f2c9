package keyformat

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

func TestEveryFormatReadsBackWhatItWrites(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		if rapid.Bool().Draw(t, "text") {
			b = []byte(rapid.String().Draw(t, "s"))
		}
		for _, f := range []Format{Text, Hex, Base64} {
			s := f.String(b)
			require.True(t, utf8.ValidString(s))
			for _, r := range s {
				require.Greater(t, r, rune(0x1f), "no control characters: %q", s)
			}
			got, err := f.Parse(s)
			require.NoError(t, err)
			require.True(t, bytes.Equal(b, got), "%s %q", f, s)
		}
		data, err := json.Marshal(Bytes(b))
		require.NoError(t, err)
		var again Bytes
		require.NoError(t, json.Unmarshal(data, &again))
		require.True(t, bytes.Equal(b, again))
	})
}

func TestTextIsPlainWhereItCanBe(t *testing.T) {
	for in, want := range map[string]string{
		"user/17": "user/17", "two words": "two words", "grün": "grün",
		"": `""`, " x": `" x"`, "x ": `"x "`, "a\tb": `"a\tb"`, `a"b`: `"a\"b"`, `a\b`: `"a\\b"`,
		"\x1b[31m": `"\x1b[31m"`, "\xff": `"\xff"`, "\u202e": `"\u202e"`,
	} {
		require.Equal(t, want, Text.String([]byte(in)))
	}
	for _, bad := range []struct {
		f Format
		s string
	}{{Text, `"open`}, {Hex, "0g"}, {Base64, "a"}, {Text, "\"\xff\""}} {
		_, err := bad.f.Parse(bad.s)
		require.Error(t, err, bad.s)
	}
	raw, err := Text.Parse("\xff")
	require.NoError(t, err)
	require.Equal(t, []byte{0xff}, raw)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var s *string
	if err := json.Unmarshal(data, &s); err == nil {
		*b = nil
		if s != nil {
			*b = append(Bytes{}, *s...)
		}
		return nil
	}
	var o struct{ Base64 []byte }
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	*b = append(Bytes{}, o.Base64...)
	return nil
}
