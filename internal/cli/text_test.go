package cli

import (
	"context"
	"io"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

// word is a type of text.
type word string

// texts has every kind of place that a text may stand in.
type texts struct {
	First  string   `arg:""`
	Second *string  `arg:"" optional:""`
	Others []string `arg:"" optional:""`
	Flag   string
	Named  word
	Given  *string
	List   []string
	Lines  []string `sep:"none"`
}

func readTexts(t interface {
	require.TestingT
	Context() context.Context
}, args ...string,
) *texts {
	var got texts
	p := &Program{Name: "sieve", Vars: kong.Vars{}, Stdout: io.Discard, Stderr: io.Discard}
	_, err := p.Parse(t.Context(), append([]string{"sieve"}, args...), &got)
	require.NoError(t, err)
	return &got
}

// An argument may hold any byte but NUL.
func TestArgumentsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 8),
			func(b []byte) string { return "x" + string(b) + "x" })
		a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
		got := readTexts(t, a, b, c, a, "--flag", b, "--named="+c, "--given", a, "--lines", b, "--lines="+c)
		require.Equal(t, a, got.First)
		require.Equal(t, b, *got.Second)
		require.Equal(t, []string{c, a}, got.Others)
		require.Equal(t, b, got.Flag)
		require.Equal(t, word(c), got.Named)
		require.Equal(t, a, *got.Given)
		require.Equal(t, []string{b, c}, got.Lines)
	})
}

func TestListsAreSplitAtCommas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a": {"a"}, "a,b": {"a", "b"}, ",a,,b,": {"", "a", "", "b"}, `a\,b,c`: {"a,b", "c"}, `a\b\`: {`a\b\`},
		`a,\`:              {"a", `\`},
		"\xff,\xfe\\,\x80": {"\xff", "\xfe,\x80"},
	} {
		require.Equal(t, want, readTexts(t, "first", "--list", text).List, "%q", text)
		require.Equal(t, append(want, "more"), readTexts(t, "first", "--list="+text, "--list", "more").List, "%q", text)
	}
	require.Empty(t, readTexts(t, "first", "--list=").List)
}

func TestNumbersAreWrittenInDigits(t *testing.T) {
	t.Parallel()
	var got struct {
		Keys  int
		Sizes []int
	}
	p := &Program{Name: "sieve", Stdout: io.Discard, Stderr: io.Discard}
	_, err := p.Parse(t.Context(), []string{"sieve", "--keys=-12", "--sizes=1,2"}, &got)
	require.NoError(t, err)
	require.Equal(t, -12, got.Keys)
	require.Equal(t, []int{1, 2}, got.Sizes)
	for _, text := range []string{"1e6", "1M", "1_000k", "2.5"} {
		require.True(t, IsShortNumber(text), text)
		for _, flag := range []string{"--keys=", "--sizes=1,"} {
			_, err := p.Parse(t.Context(), []string{"sieve", flag + text}, &got)
			require.ErrorIs(t, err, ErrUsage)
			require.ErrorContains(t, err, `"`+text+`" is no whole number: write its digits, such as 1000000`)
		}
	}
	_, err = p.Parse(t.Context(), []string{"sieve", "--keys=100000000000000000000"}, &got)
	require.ErrorContains(t, err, "100000000000000000000 is too large a number")
	require.False(t, IsShortNumber("1000000"))
	require.False(t, IsShortNumber("1e6.txt"))
}
