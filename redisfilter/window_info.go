package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
)

// A WindowInfo describes what Redis holds of an owner in the windows that are asked.
type WindowInfo struct {
	Owner   string
	Windows int   // that hold keys
	Keys    int   // an estimate, from the bits that are set; a key counts in each window that it was added to
	Layers  int   // of the window that has most
	Shards  int   // values in Redis
	Bytes   int64 // of the values; Redis adds some 100 bytes to each

	// FalsePositiveRate is the probability that Contains says true for a key that was not added, as theory
	// gives it for the estimates of keys.
	FalsePositiveRate float64
}

// Info tells what Redis holds of the owner. It takes a trip, and one more for each layer that a window
// has beside its first.
func (f *Window) Info(ctx context.Context) (WindowInfo, error) {
	ctx, cancel := f.windows.deadline(ctx)
	defer cancel()
	info := WindowInfo{Owner: f.owner}
	op, err := f.begin(ctx)
	if err != nil {
		return info, err
	}
	return info, op.client.wrap(op.name, op.survey(ctx, info.add))
}

// add counts a shard.
func (i *WindowInfo) add(s shardState, shape layerShape) {
	keys := min(shape.keysOf(s.ones), maxKeys)
	i.Keys += int(math.Round(keys))
	i.Shards++
	i.Bytes += int64(shape.shardLen())
	i.Layers = max(i.Layers, s.layer+1)
	i.FalsePositiveRate += blocked.Rate(keys, shape.Lines, shape.Probes) / float64(shape.Shards)
	if s.layer == 0 {
		i.Windows++
	}
}

// survey calls f with each shard of the owner that there is.
func (op *windowOp) survey(ctx context.Context, f func(shardState, layerShape)) error {
	there := func(s shardState) error {
		switch {
		case s.err != nil:
			return s.err
		case s.whole:
			f(s, op.layers[s.layer])
		case s.length != 0:
			return fmt.Errorf("%w: %s is not whole", ErrForeign, s.key)
		}
		return nil
	}
	layers, err := op.grown(ctx)
	for prefix, n := range layers {
		for layer := range n {
			err = errors.Join(err, op.surveyLayer(ctx, prefix, layer, true, there))
		}
	}
	return err
}

// grown returns how many layers each window has, by its prefix.
func (op *windowOp) grown(ctx context.Context) (map[string]int, error) {
	at := op.span(op.earliest, op.latest, op.period)
	var prefixes []string
	var cmds []redis.Cmder
	for window := at.first; window <= at.last; window++ {
		prefix := op.prefix(op.owner, op.generation, window)
		prefixes = append(prefixes, prefix)
		cmds = append(cmds, getHeader(ctx, prefix))
	}
	op.client.run(ctx, cmds...)
	layers := map[string]int{}
	for i, prefix := range prefixes {
		header, err := cmds[i].(*redis.StringCmd).Bytes()
		switch {
		case err != nil:
			return nil, foreign(err, shardKey(prefix, 0, 0), nil)
		case len(header) == 0:
		case !op.layers[0].isShard(keyAsked(cmds[i]), header):
			return nil, fmt.Errorf("%w: %s begins with %q", ErrForeign, keyAsked(cmds[i]), header)
		default:
			layers[prefix] = layersOf(header, len(op.layers))
		}
	}
	return layers, nil
}

// Drop forgets all keys of the owner. What other processes add at the same time may remain.
func (f *Window) Drop(ctx context.Context) error {
	ctx, cancel := f.windows.deadline(ctx)
	defer cancel()
	op, err := f.begin(ctx)
	if err != nil {
		return err
	}
	layers, err := op.grown(ctx)
	if err != nil {
		return op.client.wrap(op.name, err)
	}
	var cmds []redis.Cmder
	for prefix, n := range layers {
		for layer := range n {
			for shard := range op.layers[layer].Shards {
				cmds = append(cmds, redis.NewIntCmd(ctx, "unlink", shardKey(prefix, layer, shard)))
			}
		}
	}
	op.client.run(ctx, cmds...)
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return op.client.wrap(op.name, err)
		}
	}
	return nil
}
