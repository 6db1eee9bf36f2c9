package owners

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// windowsOfAda returns windows in which the owner "ada" has the key "k", and their server.
func windowsOfAda(t *testing.T) (*redistest.Server, *Sets) {
	s := redistest.Start(t)
	w := setsTest{addrs: []string{s.Addr}, keys: 100, rate: 0.01}.open(t, 0)
	require.NoError(t, w.Of("ada").Add(t.Context(), []byte("k")))
	return s, w
}

func TestWindowsRefuseForeignValues(t *testing.T) {
	t.Parallel()
	s, w := windowsOfAda(t)
	key := ""
	valuesOf(t, s.Client(), func(k string) { key = k })
	whole := s.Client().Get(t.Context(), key).Val()
	set := func(value string) func() error {
		return func() error { return s.Client().Set(t.Context(), key, value, 0).Err() }
	}
	for name, put := range map[string]func() error{
		"list":          func() error { return s.Client().LPush(t.Context(), key, "x").Err() },
		"hash":          func() error { return s.Client().HSet(t.Context(), key, "x", "y").Err() },
		"short":         set("x"),
		"header only":   set(whole[:layout.HeaderLen]),
		"cut off":       set(whole[:layout.HeaderLen+70]),
		"cut line":      set(whole[:layout.HeaderLen+30]),
		"other header":  set("x" + whole[1:]),
		"other version": set(whole[:4] + "\x02" + whole[5:]),
		"other lines":   set(whole[:6] + "\x01" + whole[7:]),
		"zeros":         set(strings.Repeat("\x00", len(whole))),
		"no marks":      set(whole[:layout.HeaderLen] + strings.Repeat("\x00", len(whole)-layout.HeaderLen)),
	} {
		require.NoError(t, s.Client().Del(t.Context(), key).Err())
		require.NoError(t, put(), name)
		absent := numbered("absent", 20) // in all lines
		maybe, err := w.Of("ada").MContains(t.Context(), absent)
		if name != "cut off" {
			require.Equal(t, len(absent), count(maybe), name)
		}
		require.ErrorIs(t, err, redisfilter.ErrForeign, name)
		require.ErrorContains(t, err, key[:len(key)-1], name)
		for _, k := range absent {
			fresh, err := w.Of("ada").AddNew(t.Context(), k)
			if name != "cut off" || err != nil {
				require.ErrorIs(t, err, redisfilter.ErrForeign, name)
				require.ErrorContains(t, err, key[:len(key)-1], name)
			}
			require.False(t, fresh, name)
			require.ErrorIs(t, w.Of("ada").Add(t.Context(), k), redisfilter.ErrForeign, name)
		}
	}
}

// Bytes of any kind under an owner's keys make no panic, and a single answer with an error is "maybe".
func TestWindowsSurviveAnyValue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := setsTest{addrs: []string{s.Addr}, keys: 5, rate: 0.01, keep: 2}.open(t, 0).Of("ada")
	require.NoError(t, f.MAdd(t.Context(), numbered("item", 50))) // of two layers
	whole := map[string]string{}
	valuesOf(t, s.Client(), func(key string) { whole[key] = s.Client().Get(t.Context(), key).Val() })
	require.GreaterOrEqual(t, len(whole), 2)
	property.Check(t, func(t *rapid.T) {
		for key, value := range whole {
			data := []byte(value)
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
			if rapid.Bool().Draw(t, "replaced") {
				data = rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
			} else {
				data = data[:len(data)-min(len(data), rapid.IntRange(0, 200).Draw(t, "cut"))]
			}
			require.NoError(t, s.Client().Set(t.Context(), key, data, time.Hour).Err())
		}
		for _, key := range numbered("item", 8) {
			maybe, err := f.Contains(t.Context(), key)
			require.True(t, err == nil || maybe, "%v", err)
			fresh, err := f.AddNew(t.Context(), key)
			require.True(t, err == nil || !fresh, "%v", err)
		}
		info, err := f.Info(t.Context())
		require.True(t, err != nil || info.Shards >= info.Windows && info.FalsePositiveRate <= 2, "%+v", info)
	})
}

func TestScriptRepliesAreJudged(t *testing.T) {
	cfg, err := newConfig(config.Request{Kind: config.KindWindows, Keys: 10, Rate: 0.01})
	require.NoError(t, err)
	o := newWindows(nil, "feed", cfg)
	seats := o.seats("ada", "g", 1, 3, []uint64{1})
	keys := []string{"a", "b", "c"}
	judge := func(reply []int64, err error) (int64, error) {
		cmd := redis.NewCmd(context.Background())
		value := make([]any, len(reply))
		for i, n := range reply {
			value[i] = n
		}
		cmd.SetVal(value)
		cmd.SetErr(err)
		return o.judgeAdd(cmd, keys, seats, make([]int, len(seats)))
	}
	found, err := judge([]int64{addFresh, 1, 2, 1}, nil)
	require.NoError(t, err)
	require.Equal(t, int64(addFresh), found)
	require.Equal(t, 2, o.KnownLayers(seats[1]))
	_, err = judge([]int64{-2}, nil)
	require.ErrorIs(t, err, redisfilter.ErrForeign)
	require.ErrorContains(t, err, "b is no shard")
	property.Check(t, func(t *rapid.T) {
		reply := rapid.SliceOfN(rapid.Int64Range(-5, 40), 0, 6).Draw(t, "reply")
		found, err := judge(reply, nil)
		switch {
		case err != nil:
			require.ErrorIs(t, err, redisfilter.ErrForeign)
		case found == addPresent:
			require.Equal(t, []int64{addPresent}, reply)
		default:
			require.Len(t, reply, 4)
			require.Contains(t, []int64{addAgain, addFresh}, found)
		}
		for _, s := range seats {
			require.LessOrEqual(t, o.KnownLayers(s), len(o.Layers))
		}
	})
}
