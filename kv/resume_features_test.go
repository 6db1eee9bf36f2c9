package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	sift "github.com/siftkv/siftkv/internal/vfs"
)

// A manifest that fails as it is to say that there will be operands, or later, is
// replaced by one that knows the merger.
func TestAResumedStoreKnowsItsMerger(t *testing.T) {
	for _, before := range []bool{false, true} { // the first operand
		for _, op := range []string{"write", "sync"} {
			f := &faultFS{fs: sift.NewMem()}
			o := &Options{fs: f, Merger: Append(","), backoff: quickBackoff}
			db, err := Open("db", o)
			require.NoError(t, err)
			require.NoError(t, db.Set([]byte("k"), []byte("1"), Sync))
			if before {
				require.NoError(t, db.Merge([]byte("k"), []byte("2"), Sync))
			}
			failOnce(f, op)
			require.ErrorIs(t, db.Merge([]byte("k"), []byte("failed"), Sync), ErrReadOnly)
			db.untilResumed()
			require.NoError(t, db.Merge([]byte("k"), []byte("3"), Sync))
			want := model{"k": "1,3"}
			if before {
				want["k"] = "1,2,3"
			}
			db.abandonLikeACrash(t)
			_, err = Open("db", &Options{fs: f, Merger: Int64Add})
			require.ErrorIs(t, err, ErrInvalidOptions)
			db, err = Open("db", &Options{fs: f})
			require.NoError(t, err)
			requireContents(t, want, db)
			require.NoError(t, db.Close())
		}
	}
}
