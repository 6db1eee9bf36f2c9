package offheap

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestRegionsAreZerosAndAligned(t *testing.T) {
	for _, n := range []int{0, 1, 7, 4096, minMapped - 1, minMapped, minMapped + 1, 1 << 20} {
		r := New(n)
		b := r.Bytes()
		require.Len(t, b, n)
		for i := range b {
			require.Zero(t, b[i])
			b[i] = byte(i)
		}
		require.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8)
		r.Free()
		require.Nil(t, r.Bytes())
		r.Free()
	}
}

func TestWhatIsUsedIsCounted(t *testing.T) {
	before := Used()
	r := New(1 << 20)
	if r.mapping != nil || Poisons {
		require.Equal(t, before+1<<20, Used())
	}
	r.Free()
	require.Equal(t, before, Used())
}

// The race detector watches the heap alone.
func TestSmallRegionsAreWatched(t *testing.T) {
	small, ok := Reserve(1 << 20)
	require.True(t, ok)
	large, ok := Reserve(64 << 20)
	require.True(t, ok)
	for _, r := range []*Region{New(1 << 20), small} {
		require.False(t, Poisons && r.mapping != nil)
		r.Free()
	}
	for _, r := range []*Region{New(64 << 20), large} {
		require.Equal(t, runtime.GOOS != "windows", r.mapping != nil)
		r.Free()
	}
}

func TestSharedRegionsGoWithTheirOwner(t *testing.T) {
	type owner struct{ b []byte }
	before := Used()
	func() {
		o := &owner{}
		r := NewShared(o, 1<<20)
		o.b = r.Bytes()
		if r.mapping != nil || Poisons {
			requireUsedIn(t, before+1<<20, 3)
		}
		o.b[1<<19] = 1
		runtime.KeepAlive(o)
	}()
	requireUsedIn(t, before, 10_000)
}

// requireUsedIn requires that bytes is the number of used bytes after one of the given number of garbage collections:
// unreachable memory may be freed only after several.
func requireUsedIn(t *testing.T, bytes int64, collections int) {
	t.Helper()
	for range collections {
		runtime.GC()
		if Used() == bytes {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.Equal(t, bytes, Used())
}

func TestPagesOfAReservedRegionCanBeDiscarded(t *testing.T) {
	r, ok := Reserve(1 << 20)
	require.True(t, ok)
	b := r.Bytes()
	b[0], b[1<<19] = 1, 1
	r.Discard(1<<19-1, 1<<20)
	require.EqualValues(t, 1, b[0])
	r.Free()
}
