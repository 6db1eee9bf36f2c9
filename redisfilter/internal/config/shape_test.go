package config

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

func drawRequest(t *rapid.T) Request {
	r := Request{
		Kind:       KindBlocked,
		Keys:       int(math.Exp2(rapid.Float64Range(0, 36).Draw(t, "log2 keys"))),
		Rate:       math.Pow(10, rapid.Float64Range(-6, math.Log10(0.5)).Draw(t, "log10 rate")),
		ShardBytes: rapid.IntRange(80, MaxShardBytes).Draw(t, "shard bytes"),
		Partitions: rapid.SampledFrom([]int{0, 1, 7, 1 << 16}).Draw(t, "partitions"),
	}
	r.Rate = min(0.5, max(minRate, r.Rate))
	if rapid.Bool().Draw(t, "grows") {
		r.Growth = rapid.Float64Range(2, 100).Draw(t, "growth")
		r.Rate = max(MinGrowing, r.Rate)
	}
	return r
}

// rateOf is what theory gives for keys in the lines of some partitions as they are in Redis: a key has no
// use of the mark, and two positions share a bit.
func rateOf(keys int, l layout.Layer, partitions int) float64 {
	return blocked.Rate(float64(keys)*512/510, partitions*l.Shards*l.Lines, l.Probes)
}

func TestShapesKeepThePromise(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		partitions, layers, err := shapes(r)
		if err != nil {
			require.Greater(t, r.Keys, 1<<20, "%+v: %v", r, err)
			return
		}
		require.NoError(t, checkLayers(layers))
		require.LessOrEqual(t, partitions, max(r.Keys, r.Partitions))
		require.GreaterOrEqual(t, partitions*layers[0].Keys, r.Keys)
		require.Equal(t, r.Growth != 0, len(layers) > 1, "a set that is to grow can")
		sum := 0.0
		for i, l := range layers {
			require.LessOrEqual(t, l.Len(), r.ShardBytes, "layer %d", i)
			sum += rateOf(l.Keys, l, 1) // each partition grows when it is full
		}
		if r.Growth == 0 { // some partitions get more keys than others
			sum = rateOf(r.Keys, layers[0], partitions)
		}
		require.LessOrEqual(t, sum, r.Rate, "%+v: %+v", r, layers)
	})
}

func TestShapesRefuse(t *testing.T) {
	good := Request{Kind: KindBlocked, Keys: 1000, Rate: 0.01, ShardBytes: DefaultShard}
	for name, spoil := range map[string]func(*Request){
		"no keys": func(r *Request) { r.Keys = 0 },
		"too many keys": func(r *Request) {
			keys := int64(layout.MaxKeys) + 1
			if r.Keys = int(keys); int64(r.Keys) != keys {
				r.Keys = -1 // no int of 32 bits is too many
			}
		},
		"rate 0":          func(r *Request) { r.Rate = 0 },
		"rate NaN":        func(r *Request) { r.Rate = math.NaN() },
		"rate 1":          func(r *Request) { r.Rate = 1 },
		"small growing":   func(r *Request) { r.Rate, r.Growth = minRate, 2 },
		"growth 1":        func(r *Request) { r.Growth = 1 },
		"growth NaN":      func(r *Request) { r.Growth = math.NaN() },
		"growth infinite": func(r *Request) { r.Growth = math.Inf(1) },
		"partitions":      func(r *Request) { r.Partitions = -1 },
		"many partitions": func(r *Request) { r.Partitions = 1<<16 + 1 },
		"small shards":    func(r *Request) { r.ShardBytes = 79 },
		"large shards":    func(r *Request) { r.ShardBytes = MaxShardBytes + 1 },
	} {
		r := good
		spoil(&r)
		_, _, err := shapes(r)
		require.Error(t, err, name)
	}
	_, _, err := shapes(good)
	require.NoError(t, err)
}

// The estimate of keys decides when a set grows: it has to be right where a shard is full, and near
// right around it.
func TestKeysOfIsNear(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	for _, rate := range []float64{0.1, 0.01, 0.0001} {
		_, layers, err := shapes(Request{Kind: KindBlocked, Keys: 3000, Rate: rate, ShardBytes: MaxShardBytes})
		require.NoError(t, err)
		l := layers[0]
		for _, share := range []float64{0.1, 0.5, 1, 1.5} {
			keys := int(float64(l.Keys) * share)
			shard := l.Blank()
			for range keys {
				addTo(shard, l, rng.Uint64())
			}
			got := l.KeysOf(layout.Ones(shard[layout.HeaderLen:]) - l.Lines)
			require.InEpsilon(t, keys, got, 0.08, "rate %v, %d keys", rate, keys)
			require.Equal(t, share > 0.99, l.Full(layout.Ones(shard[layout.HeaderLen:])-l.Lines) || share == 1,
				"rate %v, %d keys", rate, keys)
		}
	}
}

// addTo sets the bits of a hash in a shard that is alone in its partition.
func addTo(shard []byte, l layout.Layer, hash uint64) {
	spot := blocked.Locate(hash)
	_, within := spot.Split(1)
	_, line := l.Place(within)
	layout.SetBits(shard, line, spot, l.Probes)
}

func TestPlacesAreWithinTheShards(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		l := layout.Layer{
			Keys:   1,
			Shards: rapid.IntRange(1, maxShards).Draw(t, "shards"),
			Lines:  rapid.IntRange(1, (MaxShardBytes-layout.HeaderLen)/64).Draw(t, "lines"),
			Probes: 1,
		}
		require.NoError(t, checkLayers(append([]layout.Layer{{Keys: 1, Shards: 1, Lines: 1, Probes: 1}}, l)))
		for _, within := range []uint64{0, math.MaxUint64, rapid.Uint64().Draw(t, "within")} {
			shard, line := l.Place(within)
			require.True(t, shard >= 0 && shard < l.Shards && line >= 0 && line < l.Lines, fmt.Sprint(shard, line))
		}
	})
}
