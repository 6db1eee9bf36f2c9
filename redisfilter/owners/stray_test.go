package owners

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

func TestWindowsRefuseTheShardOfAnotherKey(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	for _, differs := range []string{"owner", "window"} {
		t.Run(differs, func(t *testing.T) {
			s, w := windowsOfAda(t)
			key := ""
			valuesOf(t, s.Client(), func(k string) { key = k })
			from := strings.Replace(key, "/ada}", "/bob}", 1)
			if differs == "owner" {
				require.NoError(t, w.Of("bob").Add(t.Context(), []byte("other")))
			} else {
				from = key + "0"
				value := w.current.Load().windows.Layers[0].New(from)
				require.NoError(t, s.Client().Set(t.Context(), from, value, 0).Err())
			}
			require.NoError(t, s.Client().Copy(t.Context(), from, key, 0, true).Err())
			maybe, err := w.Of("ada").Contains(t.Context(), []byte("k"))
			require.True(t, maybe)
			require.ErrorIs(t, err, redisfilter.ErrForeign)
			fresh, err := w.Of("ada").AddNew(t.Context(), []byte("k"))
			require.False(t, fresh)
			require.ErrorIs(t, err, redisfilter.ErrForeign)
			require.ErrorContains(t, err, key)
			_, err = w.Of("ada").Info(t.Context())
			require.ErrorIs(t, err, redisfilter.ErrForeign)
		})
	}
}

// A shard that an earlier release made has no tag.
func TestWindowsWithoutATagAreWhole(t *testing.T) {
	t.Parallel()
	s, w := windowsOfAda(t)
	valuesOf(t, s.Client(), func(key string) {
		require.NoError(t, s.Client().SetRange(t.Context(), key, layout.TagAt, "\x00\x00\x00\x00").Err())
	})
	maybe, err := w.Of("ada").MContains(t.Context(), [][]byte{[]byte("k"), []byte("absent")})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, maybe)
	fresh, err := w.Of("ada").AddNew(t.Context(), []byte("absent"))
	require.NoError(t, err)
	require.True(t, fresh)
}
