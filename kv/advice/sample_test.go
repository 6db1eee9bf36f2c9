package advice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/kv"
)

// The empty key of a sample is found where it is, as others are.
func TestAdviceFindsTheEmptyKey(t *testing.T) {
	db, err := kv.Open(t.TempDir(), &kv.Options{LookupSample: 64 << 10})
	require.NoError(t, err)
	require.NoError(t, db.Set(nil, []byte("value"), kv.NoSync))
	require.NoError(t, db.Flush(t.Context()))
	_, err = db.Get(nil)
	require.NoError(t, err)
	w := locatorOf(t, db)
	s := w.store.Sampler.Take()
	asked := traceOfSample(&s)
	require.NoError(t, w.locate(t.Context(), asked))
	require.Len(t, asked.Keys, 1)
	require.Equal(t, []advise.Step{{Present: true}}, asked.Keys[0].Path)
	require.True(t, asked.Keys[0].Found)
	require.Zero(t, asked.Changed)
	w.store.Release()
	require.NoError(t, db.Close())
}
