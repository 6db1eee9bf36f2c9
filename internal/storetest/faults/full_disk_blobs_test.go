package faults

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// A crowdedStore is a store of 4 MiB in values of 16 KiB on a disk that is hardly larger.
type crowdedStore struct {
	*kv.DB
	t       *testing.T
	disk    *vfstest.BoundedFS
	opts    *kv.Options
	rng     *rand.Rand
	bytes   *rand.ChaCha8
	m       storetest.Model
	refused int // writes
}

const crowdedKeys, crowdedValue = 256, 16 << 10

func openCrowded(t *testing.T, atCommit bool, change func(*kv.Options)) *crowdedStore {
	t.Helper()
	disk := vfstest.NewBoundedFS(0)
	o := stores.With(harness.Harness{FS: disk, BlobSize: 64 << 10, Backoff: storetest.Quick},
		&kv.Options{SeparateFrom: 1000,
			SeparateAtCommit: atCommit, MemtableSize: 128 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10,
			Compression: sstable.NoCompression, CacheSize: -1})
	if change != nil {
		change(o)
	}
	s := &crowdedStore{DB: stores.OpenDir(t, "db", o), t: t, disk: disk, opts: o, rng: rand.New(rand.NewPCG(3, 4)),
		bytes: rand.NewChaCha8([32]byte{5}), m: storetest.Model{}}
	for i := range crowdedKeys {
		require.NoError(t, s.put(i))
	}
	require.NoError(t, s.Flush(t.Context()))
	harness.Settle(s.DB)
	return s
}

// put sets a key to another value. A full disk may refuse it.
func (s *crowdedStore) put(i int) error {
	v := make([]byte, crowdedValue)
	_, _ = s.bytes.Read(v)
	k := fmt.Sprintf("key%06d", i)
	err := s.Set([]byte(k), v, []*kv.WriteOptions{kv.NoSync, kv.Sync}[s.rng.IntN(2)])
	if err == nil {
		s.m[k] = string(v)
		return nil
	}
	require.ErrorIs(s.t, err, kv.ErrReadOnly)
	require.ErrorIs(s.t, err, syscall.ENOSPC)
	s.refused++
	return err
}

// overwrite sets keys at random until n writes have succeeded.
func (s *crowdedStore) overwrite(n int) {
	for range n {
		for i := s.rng.IntN(crowdedKeys); s.put(i) != nil; {
			stores.UntilResumed(s.DB)
		}
	}
}

// reopened requires that a store has what was acknowledged, before it is closed and when it is open again.
func (s *crowdedStore) reopened() {
	storetest.RequireContents(s.t, s.m, s.DB)
	require.NoError(s.t, s.Close())
	s.DB = stores.OpenDir(s.t, "db", s.opts)
	storetest.RequireContents(s.t, s.m, s.DB)
	require.NoError(s.t, storetest.Verify(s.DB, io.Discard))
	require.NoError(s.t, s.Close())
}

// obsolete returns how many bytes readers keep in files that no version has.
func (s *crowdedStore) obsolete() int64 {
	files, release, err := harness.FilesOf(s.DB)
	require.NoError(s.t, err)
	defer release()
	return files.Cleaner.History.Obsolete()
}

// spaceWanted returns how many bytes of the disk the store wants free.
func (s *crowdedStore) spaceWanted() int64 {
	files, release, err := harness.FilesOf(s.DB)
	require.NoError(s.t, err)
	defer release()
	o := compaction.Options{MemtableSize: s.opts.MemtableSize, TargetFileSize: s.opts.TargetFileSize,
		BlobFileSize: harness.Of(s.opts).BlobSize}
	return o.SpaceWanted(files.Version)
}

// A store that is overwritten on a disk with room for little more than its limit of space goes on, whether the disk
// says what is free or not: where the limit does not fit, more is collected.
func TestOverwritesOnADiskThatIsNearlyFullGoOn(t *testing.T) {
	t.Parallel()
	for _, size := range []float64{1.75, 1.84}[scale.Fewer(0, 1):] {
		for _, atCommit := range []bool{false, true} {
			for _, silent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v/%v/%v", size, atCommit, silent), func(t *testing.T) {
					s := openCrowded(t, atCommit, nil)
					s.disk.Silent = silent
					s.disk.Bound(int64(size * crowdedKeys * crowdedValue))
					for range scale.Count(scale.Fewer(3, 1), 12) {
						s.overwrite(crowdedKeys)
					}
					t.Logf("%d writes refused, %d found no room; %d collections", s.refused, s.disk.Full,
						s.Metrics().Blobs.GCs)
					if !silent { // a moment between two looks at the disk may be enough to fill it
						require.LessOrEqual(t, s.refused, 1, "writers wait instead")
					}
					s.reopened()
				})
			}
		}
	}
}

// Files that a reader needs are not made up for by collecting others, which frees nothing as long as it reads.
func TestCollectionDoesNotFillADiskForAReader(t *testing.T) {
	t.Parallel()
	for _, atCommit := range []bool{false, true} {
		s := openCrowded(t, atCommit, nil)
		s.overwrite(crowdedKeys)
		require.NoError(t, s.Flush(t.Context()))
		harness.Settle(s.DB)
		it, err := s.NewIter(nil)
		require.NoError(t, err)
		wanted := s.spaceWanted()
		s.disk.Bound(s.disk.ResetPeak() + wanted)
		before := s.Metrics().Blobs.GCs
		s.overwrite(8)
		require.NoError(t, s.Flush(t.Context()))
		harness.Settle(s.DB)
		require.Zero(t, s.disk.Full, "%d collections", s.Metrics().Blobs.GCs-before)
		require.Greater(t, s.obsolete(), int64(0))
		require.NoError(t, it.Close())
		harness.Settle(s.DB)
		require.Zero(t, s.obsolete())
		s.reopened()
	}
}

// A store on a disk that another has filled collects while it takes no writes, until it can flush what it has in
// memory. Only the store makes room: it begins with its ballast.
func TestAStoreOnAFullDiskCollectsUntilItResumes(t *testing.T) {
	t.Parallel()
	for _, atCommit := range []bool{false, true} {
		for _, silent := range []bool{false, true} {
			s := openCrowded(t, atCommit, func(o *kv.Options) { o.BlobSpace = 3 })
			s.disk.Silent = silent
			s.overwrite(crowdedKeys)
			require.NoError(t, s.Flush(t.Context()))
			harness.Settle(s.DB)
			for i := range 7 { // more than the ballast
				require.NoError(t, s.put(i))
			}
			before := s.Metrics().Blobs.GCs
			harness.Settle(s.DB)
			s.disk.Bound(s.disk.ResetPeak())
			require.Error(t, s.put(7))
			storetest.RequireContents(t, s.m, s.DB)
			stores.UntilResumed(s.DB)
			require.Greater(t, s.Metrics().Blobs.GCs, before)
			s.overwrite(crowdedKeys)
			s.reopened()
		}
	}
}

// A store that cannot be opened for want of space says how much it needs, and needs no more.
func TestAStoreSaysHowMuchRoomItNeedsToOpen(t *testing.T) {
	t.Parallel()
	for _, atCommit := range []bool{false, true} {
		s := openCrowded(t, atCommit, func(o *kv.Options) { harness.Of(o).BlobSize = 512 << 10 }) // no ballast
		for i := range 6 {
			require.NoError(t, s.put(crowdedKeys+i))
		}
		s.disk.Bound(s.disk.ResetPeak())
		require.Error(t, s.put(0))
		require.ErrorIs(t, s.Close(), syscall.ENOSPC)
		_, err := kv.Open("db", s.opts)
		require.ErrorIs(t, err, syscall.ENOSPC)
		said := regexp.MustCompile(`takes (\d+) bytes`).FindStringSubmatch(err.Error())
		require.NotNil(t, said, "%v", err)
		need, err := strconv.ParseInt(said[1], 10, 64)
		require.NoError(t, err)
		s.disk.Bound(s.disk.ResetPeak() + need)
		s.DB = stores.OpenDir(t, "db", s.opts)
		s.reopened()
	}
}

// A store is opened on a full disk with the room of its ballast.
func TestAFullDiskHasRoomToOpenAStore(t *testing.T) {
	t.Parallel()
	for _, atCommit := range []bool{false, true} {
		s := openCrowded(t, atCommit, nil)
		for i := range 3 {
			require.NoError(t, s.put(crowdedKeys+i))
		}
		require.NoError(t, s.Close())
		s.disk.Bound(s.disk.ResetPeak())
		s.DB = stores.OpenDir(t, "db", s.opts)
		s.reopened()
	}
}

// An edit that finds no room in the manifest is made in another, with the room of the ballast. The store goes on.
func TestAnEditWithoutRoomHasTheBallast(t *testing.T) {
	t.Parallel()
	s := openCrowded(t, false, nil)
	name := filepath.Base(storetest.NewestFile(t, s.disk, "db", manifest.FileManifest))
	s.disk.Deny(name)
	require.NoError(t, s.put(0))
	require.NoError(t, s.Flush(t.Context()))
	harness.Settle(s.DB)
	require.NotZero(t, s.disk.Full)
	require.Zero(t, s.Metrics().Failures)
	names, err := s.disk.List("db")
	require.NoError(t, err)
	require.NotContains(t, names, name)
	s.disk.Deny("")
	s.reopened()
}

// An edit that finds no room in the manifest leaves no file that takes room, and neither does a manifest that takes its
// place.
func TestAnEditWithoutRoomLeavesNoFiles(t *testing.T) {
	t.Parallel()
	s := openCrowded(t, false, func(o *kv.Options) { harness.Of(o).Backoff = storetest.Never })
	named := func() (names []string) {
		files, release, err := harness.FilesOf(s.DB)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrClosed)
		} else {
			release()
			files.Cleaner.Wait()
		}
		all, err := s.disk.List("db")
		require.NoError(t, err)
		for _, name := range all {
			if kind, _ := manifest.ParseFileName(name); kind != manifest.FileWAL && kind != manifest.FileBallast {
				names = append(names, name)
			}
		}
		return names
	}
	before := named()
	require.NoError(t, s.put(0))
	s.disk.Deny("MANIFEST")
	require.ErrorIs(t, s.Flush(t.Context()), syscall.ENOSPC)
	require.Equal(t, before, named())
	require.ErrorIs(t, s.Close(), syscall.ENOSPC) // after another attempt
	require.Equal(t, before, named())
	s.disk.Deny("")
	s.DB = stores.OpenDir(t, "db", s.opts)
	s.reopened()
}
