package locallog

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
)

var sampleIdentity = identity{id: 1<<63 + 5, store: 7, epoch: 12}

func TestGoldenIdentitiesAreDecodedAsEncoded(t *testing.T) {
	h, err := decodeIdentity(sampleIdentity.encode())
	require.NoError(t, err)
	require.Equal(t, sampleIdentity, h)
	golden.File(t, filepath.Join("testdata", "home.golden"), string(sampleIdentity.encode()))
}

// identityBound is what decoding may allocate: copies of the text.
var identityBound = hostile.Bound{PerByte: 40, Fixed: 4 << 10}

func TestHostileIdentities(t *testing.T) {
	for mutant := range hostile.Mutants(sampleIdentity.encode(), 2000) {
		identityBound.Require(t, len(mutant), func() {
			if h, err := decodeIdentity(mutant); err == nil {
				require.Equal(t, string(mutant), string(h.encode()))
			}
		})
	}
	for _, h := range []identity{{}, {id: 1}, {store: 1}} {
		_, err := decodeIdentity(h.encode())
		require.ErrorIs(t, err, errIdentity)
	}
	_, err := decodeIdentity(base.SealLine("siftkv-log format=2 and more"))
	require.ErrorIs(t, err, manifest.ErrNewerFormat)
}

func FuzzIdentity(f *testing.F) {
	f.Add(sampleIdentity.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeIdentity(b); err == nil {
			require.Equal(t, string(b), string(h.encode()))
		}
	})
}
