package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

func TestNoneThereIsNoFilter(t *testing.T) {
	p, err := none.Parse("")
	require.NoError(t, err)
	require.Equal(t, "none", p.String())
	b := p.NewBuilder()
	b.AddHash(1)
	data, ok := b.Finish([]byte("x"))
	require.False(t, ok)
	require.Equal(t, "x", string(data))

	f, err := none.Decode(data[:0])
	require.NoError(t, err)
	require.True(t, f.MayContainHash(1))
	require.True(t, none.Probe(nil, 1))
	_, err = none.Decode(data)
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
}

func TestNoneParseSaysWhatIsWrong(t *testing.T) {
	Refuses(t, none.Parse, map[string]string{
		"1":         `no filter has no parameters; for example "none"`,
		"rate=0.01": `no filter has no parameters; for example "none"`,
	})
}
