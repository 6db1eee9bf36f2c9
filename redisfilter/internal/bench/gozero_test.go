package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"
	"github.com/zeromicro/go-zero/core/bloom"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// A goZero is go-zero's filter. A call with one key is one of go-zero's. go-zero has none for many
// keys: with many, the commands that it would send are held back and go in one pipeline, which is the
// best that one could make of it by hand.
type goZero struct {
	Counter
	key    string
	bits   uint
	store  *redis.Redis
	filter *bloom.Filter
}

func openGoZero(addr, key string, bits uint) (*goZero, error) {
	logx.Disable() // it writes to the standard output
	s := &goZero{key: key, bits: bits}
	store, err := redis.NewRedis(redis.RedisConf{Host: addr, Type: redis.NodeType}, redis.WithHook(holder{}),
		redis.WithHook(&s.Counter))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", addr, err)
	}
	s.store, s.filter = store, bloom.New(store, key, bits)
	// The first calls bring the scripts to the server, which must know them before they are pipelined.
	if _, err := s.filter.Exists([]byte("first")); err != nil {
		return nil, err
	}
	return s, s.filter.Add([]byte("first"))
}

// Do implements Subject.
func (s *goZero) Do(ctx context.Context, op Op, keys [][]byte) (yes int, err error) {
	if len(keys) > 1 {
		return s.pipelined(ctx, op, keys)
	}
	found, err := s.call(ctx, op, keys[0])
	if found {
		yes = 1
	}
	return yes, err
}

func (s *goZero) call(ctx context.Context, op Op, key []byte) (found bool, err error) {
	if op == Add {
		return false, s.filter.AddCtx(ctx, key)
	}
	return s.filter.ExistsCtx(ctx, key)
}

func (s *goZero) pipelined(ctx context.Context, op Op, keys [][]byte) (yes int, err error) {
	held := make([]goredis.Cmder, 0, len(keys))
	holding := context.WithValue(ctx, heldKey{}, &held)
	for _, key := range keys {
		if _, err := s.call(holding, op, key); err != nil {
			return 0, err
		}
	}
	err = s.store.PipelinedCtx(ctx, func(pipe redis.Pipeliner) error {
		for _, cmd := range held {
			if err := pipe.Process(ctx, cmd); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	for _, cmd := range held {
		if found, _ := cmd.(*goredis.Cmd).Int(); found == 1 {
			yes++
		}
	}
	return yes, nil
}

// fill puts a bitmap into Redis that has the bits go-zero would set, one SET instead of a script for each key.
func (s *goZero) fill(ctx context.Context, keys [][]byte) error {
	bits := make([]byte, (s.bits+7)/8)
	for _, key := range keys {
		var held []goredis.Cmder
		if err := s.filter.AddCtx(context.WithValue(ctx, heldKey{}, &held), key); err != nil {
			return err
		}
		for _, arg := range held[0].Args()[4:] { // behind EVALSHA, the script, 1 and the key
			offset, err := strconv.ParseUint(fmt.Sprint(arg), 10, 64)
			if err != nil {
				return fmt.Errorf("go-zero sent an offset %v: %w", arg, err)
			}
			bits[offset/8] |= 0x80 >> (offset % 8)
		}
	}
	return s.store.SetCtx(ctx, s.key, string(bits))
}

// heldKey is that of a context whose commands are held back, with the list for them.
type heldKey struct{}

// holder is the hook that holds them back.
type holder struct{}

func (holder) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (holder) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (holder) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		held, ok := ctx.Value(heldKey{}).(*[]goredis.Cmder)
		if !ok {
			return next(ctx, cmd)
		}
		*held = append(*held, cmd)
		cmd.(*goredis.Cmd).SetVal(int64(1))
		return nil
	}
}
