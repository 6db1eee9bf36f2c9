package copies

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

// unconnected returns a mirror whose leases are as given and whose last round
// was just answered. No other will be.
func unconnected(lease time.Duration) *Server {
	m := &Server{
		options: Options{Lease: lease}.withDefaults(),
		born:    time.Now(),
		wake:    make(chan struct{}, 1),
		entries: make(map[string]*Entry),
	}
	now := time.Now()
	m.lease.Store(&now)
	return m
}

// want is an entry that is wanted.
func want(m *Server, key string, size int) *Entry {
	e := m.Entry(key, size)
	m.Want(e)
	return e
}

// arrive has a fetch of e bring b.
func arrive(t require.TestingT, e *Entry, b []byte) {
	e.takeOff(0)
	require.False(t, e.land(Clean, b))
}

// Bit returns the bit that GETBIT gives, false beyond the end.
func (v View) Bit(offset uint32) bool {
	i, mask := place(offset)
	return i < len(v.words) && atomic.LoadUint64(&v.words[i])&mask != 0
}

// bytesOf returns all of a view.
func bytesOf(v View) []byte {
	b := make([]byte, v.Len())
	v.ReadAt(b, 0)
	return b
}

func TestViewReadsWhatWasFetched(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "bytes")
		e := want(unconnected(time.Hour), "k", len(b))
		arrive(t, e, b)
		v, fresh := e.Load()
		require.True(t, fresh)
		require.Equal(t, len(b), v.Len())

		offset := rapid.IntRange(-2, len(b)+2).Draw(t, "offset")
		dst := make([]byte, rapid.IntRange(0, len(b)+2).Draw(t, "length"))
		n := v.ReadAt(dst, offset)
		if offset < 0 || offset >= len(b) {
			require.Zero(t, n)
		} else {
			require.Equal(t, b[offset:min(offset+len(dst), len(b))], dst[:n])
		}
		for i := range uint32(8*len(b) + 70) {
			want := int(i/8) < len(b) && b[i/8]>>(7-i%8)&1 == 1
			require.Equal(t, want, v.Bit(i), "bit %d", i)
		}
	})
}

// A model of one string: what Redis has, what the copy may be held to. Fetches
// begin, bring what Redis had at any moment of theirs, fail; the string gains
// bits, is replaced, and is invalidated when it changes.
func TestEntryAgainstModel(t *testing.T) {
	const size = 4
	property.Check(t, func(t *rapid.T) {
		e := want(unconnected(time.Hour), "k", size)
		server := make([]byte, size)   // what Redis has; nil: missing
		var seen []byte                // what the fetch under way has read
		var flying, read, tracked bool // the fetch; Redis remembers that we read
		own := map[uint32]bool{}       // reported by Or since the string was last replaced
		change := func(to []byte) {
			server = to
			if tracked {
				tracked = false
				e.spoil()
			}
		}
		with := func(b []byte, bit uint32) []byte {
			b = append([]byte(nil), b...)
			b[bit/8] |= 0x80 >> (bit % 8)
			return b
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				if !flying {
					e.takeOff(0)
					flying, read = true, false
				}
			},
			"read": func(t *rapid.T) {
				if flying && !read {
					seen, read, tracked = server, true, true
				}
			},
			"answer": func(t *rapid.T) {
				if flying && read {
					state := Clean
					if seen == nil {
						state = Lost
					}
					e.land(state, seen)
					flying = false
				}
			},
			"fail": func(t *rapid.T) {
				if flying {
					e.land(Dirty, nil)
					flying = false
				}
			},
			"others add": func(t *rapid.T) {
				if bit := rapid.Uint32Range(0, 8*size-1).Draw(t, "bit"); server != nil {
					change(with(server, bit))
				}
			},
			"we add": func(t *rapid.T) {
				if bit := rapid.Uint32Range(0, 8*size-1).Draw(t, "bit"); server != nil {
					change(with(server, bit))
					e.Or(bit)
					own[bit] = true
				}
			},
			"replace": func(t *rapid.T) {
				change(make([]byte, size))
				clear(own)
			},
			"delete": func(t *rapid.T) {
				change(nil)
				clear(own)
			},
			"": func(t *rapid.T) {
				v, fresh := e.Load()
				for bit := range own {
					require.True(t, v.Len() == 0 || v.Bit(bit), "own bit %d is gone", bit)
				}
				if fresh {
					require.NotNil(t, server)
					for i := range uint32(8 * size) {
						require.True(t, v.Bit(i) || server[i/8]&(0x80>>(i%8)) == 0, "bit %d is missing", i)
					}
				}
			},
		})
	})
}

func TestReplacedStringTakesNothingOver(t *testing.T) {
	e := want(unconnected(time.Hour), "k", 2)
	arrive(t, e, []byte{0xff, 0x0f})
	e.Or(8)
	e.spoil()
	e.takeOff(0)
	e.Or(0)
	require.False(t, e.land(Clean, []byte{0, 1}))
	v, fresh := e.Load()
	require.True(t, fresh)
	require.Equal(t, []byte{0x80, 1}, bytesOf(v), "the fetched bytes, and the bit set meanwhile")
}

func TestOrBeyondTheEndIsIgnored(t *testing.T) {
	e := want(unconnected(time.Hour), "k", 2)
	e.Or(0, 1<<31) // nothing was fetched yet
	arrive(t, e, []byte{0, 0})
	e.Or(1<<32-1, 64, 15)
	v, _ := e.Load()
	require.Equal(t, []byte{0, 1}, bytesOf(v))
}

func TestFreshNeedsLeaseAndState(t *testing.T) {
	e := want(unconnected(time.Nanosecond), "k", 1)
	arrive(t, e, []byte{7})
	v, fresh := e.Load()
	require.False(t, fresh, "the lease has ended")
	require.Equal(t, []byte{7}, bytesOf(v), "its bits are good for a maybe")

	m := unconnected(time.Hour)
	e = want(m, "k", 1)
	_, fresh = e.Load()
	require.False(t, fresh, "never fetched")
	arrive(t, e, []byte{7})
	m.invalidate([]string{"k", "other"})
	_, fresh = e.Load()
	require.False(t, fresh, "invalidated")
	arrive(t, e, []byte{7})
	_, fresh = e.Load()
	require.True(t, fresh)
	m.invalidateAll()
	_, fresh = e.Load()
	require.False(t, fresh, "flushed")
	e.takeOff(0)
	m.Forget(e)
	e.land(Clean, []byte{7})
	_, fresh = e.Load()
	require.False(t, fresh, "forgotten while a fetch was under way")
	require.NotSame(t, e, want(m, "k", 1))
}

func TestBatchesAreBounded(t *testing.T) {
	m := unconnected(time.Hour)
	m.options.Batch = 100
	for _, key := range []string{"a", "b", "c", "d"} {
		want(m, key, 40)
	}
	want(m, "huge", 1000)
	m.Forget(want(m, "d", 40))
	var sizes []int
	for {
		batch, more := m.takeDue(0)
		for _, e := range batch {
			e.takeOff(0)
			require.False(t, e.land(Lost, nil))
		}
		sizes = append(sizes, len(batch))
		if !more {
			break
		}
	}
	require.Equal(t, []int{2, 1, 1}, sizes)
	require.Equal(t, Stats{Lost: 4, Leased: true}, m.Stats())

	m.invalidate([]string{"a", "b"})
	m.invalidate([]string{"a"})
	batch, more := m.takeDue(m.options.Refresh - 1)
	require.Empty(t, batch, "they were fetched less than Refresh ago")
	require.False(t, more)
	batch, _ = m.takeDue(m.options.Refresh)
	require.Len(t, batch, 2)
}

func TestInvalidated(t *testing.T) {
	keys, ok := invalidated([]any{"invalidate", []any{"a", "b"}})
	require.True(t, ok)
	require.Equal(t, []string{"a", "b"}, keys)
	for _, flush := range [][]any{
		{"invalidate", nil}, {"invalidate"}, {"invalidate", "a"}, {"invalidate", []any{int64(3)}},
		{"invalidate", []any{"a", nil}}, {"invalidate", []any{"a"}, "b"}, nil,
	} {
		_, ok := invalidated(flush)
		require.False(t, ok, "%v", flush)
	}
}

// Every goroutine sees its own bits at once, whatever fetches bring meanwhile.
func TestOwnBitsAreSeenAtOnce(t *testing.T) {
	const bits = 1 << 12
	e := want(unconnected(time.Hour), "k", bits/8)
	server := make([]byte, bits/8)
	var mu sync.Mutex // makes the server's bytes and the invalidations one
	arrive(t, e, server)
	var adders, fetcher sync.WaitGroup
	stop := make(chan struct{})
	fetcher.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			e.takeOff(0)
			mu.Lock()
			b := append([]byte(nil), server...)
			mu.Unlock()
			e.land(Clean, b)
		}
	})
	for g := range uint32(4) {
		adders.Go(func() {
			for i := range uint32(bits / 4) {
				bit := 4*i + g
				mu.Lock()
				server[bit/8] |= 0x80 >> (bit % 8)
				e.spoil()
				mu.Unlock()
				e.Or(bit)
				back := 4*rand.Uint32N(i+1) + g
				if v, _ := e.Load(); !v.Bit(bit) || !v.Bit(back) {
					t.Errorf("bit %d or %d is not there", bit, back)
					return
				}
			}
		})
	}
	adders.Wait()
	close(stop)
	fetcher.Wait()
}

func BenchmarkLoad(b *testing.B) {
	e := want(unconnected(time.Hour), "k", 4048)
	arrive(b, e, make([]byte, 4048))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		found := 0
		for pb.Next() {
			v, fresh := e.Load()
			for bit := range uint32(8) {
				if fresh && v.Bit(bit*61+1000) {
					found++
				}
			}
		}
		if found > 0 {
			b.Error("a bit of an empty string is set")
		}
	})
}
