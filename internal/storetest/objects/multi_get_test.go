package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A remoteStore is an object store from which each reply takes a second, in a bubble.
type remoteStore struct {
	*objstoretest.Faults
	gets  atomic.Int64
	bytes atomic.Int64 // that were asked for
	near  atomic.Bool  // replies take no time
	fail  atomic.Pointer[func(c objstoretest.Call) error]
}

func newRemoteStore() *remoteStore {
	s := &remoteStore{Faults: objstoretest.NewFaults(objstore.NewMem(), 1)}
	s.near.Store(true)
	s.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if s.near.Load() {
			return f
		}
		f.Delay = time.Second
		if c.Kind == objstore.Get {
			s.gets.Add(1)
			s.bytes.Add(c.Size)
		}
		if fail := s.fail.Load(); fail != nil {
			if err := (*fail)(c); err != nil {
				f.Outcome, f.Err = objstoretest.NotPerformed, err
			}
		}
		return f
	})
	return s
}

// costs returns how many requests f needs, and how many of them one after the other.
func (s *remoteStore) costs(f func()) (gets, trips int) {
	s.near.Store(false)
	defer s.near.Store(true)
	gets, began := int(s.gets.Load()), time.Now()
	f()
	return int(s.gets.Load()) - gets, int(time.Since(began) / time.Second)
}

const (
	remoteKeys  = 30_000
	remoteYoung = 16 // files in level 0, each of a hundredth of the keys
)

func remoteValue(i, file int) []byte { return fmt.Appendf(nil, "%d of %d %040d", file, i, i*i) }

// fill writes remoteKeys keys into one run, and some of them again into young files. It returns the
// files of the newest values.
func (s *remoteStore) fill(t *testing.T, o *kv.Options, young int) (db *kv.DB, newest map[int]int) {
	db = openObjects(t, s, o)
	newest = map[int]int{}
	var key []byte
	for i := range remoteKeys {
		key = storetest.ScatteredKey(key, i)
		require.NoError(t, db.Set(key, remoteValue(i, 0), kv.Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	rng := rand.New(rand.NewPCG(7, 8))
	for file := 1; file <= young; file++ {
		for range remoteKeys / 100 {
			i := rng.IntN(remoteKeys)
			key = storetest.ScatteredKey(key, i)
			require.NoError(t, db.Set(key, remoteValue(i, file), kv.Async))
			newest[i] = file
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	require.Equal(t, young, db.Metrics().Levels[0].Runs)
	return db, newest
}

// Keys that are looked up together cost the requests of Gets and one in twenty more, and take two
// rounds where filters leave few files over; where there are none, rounds that double.
func TestManyKeysOfAnObjectStoreAreFetchedSideBySide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter    string
		partition int
		young     int
		trips     int // of any call
		mean      float64
	}{
		{"blocked:10", 0, 0, 1, 1}, {"blocked:10", 0, remoteYoung, 3, 2.2}, {"blocked:20", 0, remoteYoung, 2, 1.7},
		{"blocked:10", 64, remoteYoung, 6, 4.4}, {"none", 0, remoteYoung, 5, 5},
	} {
		t.Run(fmt.Sprint(c.filter, c.partition, c.young), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o := newRemoteStore(), remoteOptions()
				o.Filter, o.IndexPartition = storetest.Filter(c.filter), c.partition
				db, newest := s.fill(t, o, c.young)
				rng := rand.New(rand.NewPCG(3, 4))
				const keys = 32
				calls := scale.Fewer(20, 5)
				perCall := func(n int) float64 { return float64(n) / float64(calls) }
				together, alone, trips, most := 0, 0, 0, 0
				for range calls {
					numbers, wanted := make([]int, keys), make([][]byte, keys)
					for i := range wanted {
						numbers[i] = rng.IntN(remoteKeys)
						wanted[i] = storetest.ScatteredKey(nil, numbers[i])
					}
					var got [][]byte
					var err error
					gets, chain := s.costs(func() { got, err = db.MultiGet(wanted) })
					require.NoError(t, err)
					for i, n := range numbers {
						require.Equal(t, string(remoteValue(n, newest[n])), string(got[i]))
					}
					together, trips, most = together+gets, trips+chain, max(most, chain)
					gets, _ = s.costs(func() {
						for _, key := range wanted {
							_, err := db.Get(key)
							require.NoError(t, err)
						}
					})
					alone += gets
				}
				t.Logf("a call: %.2f requests in %.2f round trips, %d at the most; %.2f requests of Gets",
					perCall(together), perCall(trips), most, perCall(alone))
				require.LessOrEqual(t, most, c.trips)
				require.LessOrEqual(t, perCall(trips), c.mean)
				require.LessOrEqual(t, together, alone+alone/20)
				storetest.RequireIdentities(t, db.Metrics())
				require.NoError(t, db.Close())
			})
		})
	}
}

// A key costs fewer than two times the requests of a Get, in however many files its versions are.
func TestManyVersionsOfAKeyAreNotAllFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newRemoteStore(), remoteOptions()
		o.Filter = storetest.Filter("none")
		db := openObjects(t, s, o)
		keys := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d"), []byte("e")}
		const files = 20
		for file := range files {
			require.NoError(t, db.Set([]byte("!"), nil, kv.Async)) // every file may have every key
			require.NoError(t, db.Set([]byte("~"), nil, kv.Async))
			for i, key := range keys {
				if age := files - file; age >= i*i+1 {
					require.NoError(t, db.Set(key, fmt.Append(nil, file), kv.Async))
				}
			}
			require.NoError(t, db.Flush(t.Context()))
		}
		for i, key := range keys {
			gets, trips := s.costs(func() {
				got, err := db.MultiGet([][]byte{key, key, []byte("absent")})
				require.NoError(t, err)
				require.Equal(t, fmt.Append(nil, files-(i*i+1)), got[0])
				require.Equal(t, got[0], got[1])
				require.Nil(t, got[2])
			})
			require.Equal(t, files, gets, "the absent key's are in the same blocks")
			require.Equal(t, 5, trips, "of 1, 2, 4, 8 and the others")
			gets, _ = s.costs(func() {
				_, err := db.MultiGet([][]byte{key, key})
				require.NoError(t, err)
			})
			require.Less(t, gets, 2*(i*i+1))
		}
		require.NoError(t, db.Close())
	})
}

// Operands of many keys are read side by side too.
func TestOperandsOfManyKeysAreFetchedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newRemoteStore(), remoteOptions()
		o.Merger = kv.Append(",")
		db := openObjects(t, s, o)
		keys := make([][]byte, 40)
		for file := range 3 {
			for i := range 20 * len(keys) {
				key := fmt.Appendf(nil, "%06d", i)
				if i%20 == 0 {
					keys[i/20] = key
					require.NoError(t, db.Merge(key, fmt.Append(nil, file), kv.Async))
					continue
				}
				require.NoError(t, db.Set(key, make([]byte, 400), kv.Async))
			}
			require.NoError(t, db.Flush(t.Context()))
		}
		_, trips := s.costs(func() {
			got, err := db.MultiGet(keys)
			require.NoError(t, err)
			for _, value := range got {
				require.Equal(t, "0,1,2", string(value))
			}
		})
		require.LessOrEqual(t, trips, 6, "of one file, of two, and of what else each of them has of a key")
		require.NoError(t, db.Close())
	})
}

// runsOf returns the runs of a store in which nothing changes.
func runsOf(t *testing.T, db *kv.DB) []*version.Run {
	files, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	release()
	return files.Version.Runs
}

var errRemoteFile = errors.New("the file cannot be read")

// A request that fails is the error of the keys that need it, and of no other.
func TestOneOfSeveralRequestsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newRemoteStore(), remoteOptions()
		o.Filter = storetest.Filter("none")
		db := openObjects(t, s, o)
		// Of four files the second newest has b, the third c, the oldest all.
		for _, keys := range []string{"abcd", "c", "b", "d"} {
			for _, key := range append([]string{"!", "~"}, strings.Split(keys, "")...) {
				require.NoError(t, db.Set([]byte(key), []byte(keys), kv.Async))
			}
			require.NoError(t, db.Flush(t.Context()))
		}
		runs := runsOf(t, db)
		var bad string // begins the name of the file that cannot be read
		fail := func(c objstoretest.Call) error {
			if bad != "" && strings.Contains(c.Key, bad) {
				return errRemoteFile
			}
			return nil
		}
		s.fail.Store(&fail)
		get := func(keys ...string) (values []string, err error) {
			wanted := make([][]byte, len(keys))
			for i, key := range keys {
				wanted[i] = []byte(key)
			}
			s.costs(func() {
				got, e := db.MultiGet(wanted)
				for _, value := range got {
					values = append(values, string(value))
				}
				err = e
			})
			return values, err
		}
		object := func(i int) string { // of the file of a run
			return fmt.Sprintf("%06d-", runs[i].At(0).Num)
		}
		want := []string{"d", "b", "c", "abcd"}
		got, err := get("d", "b", "c", "a")
		require.NoError(t, err)
		require.Equal(t, want, got)
		bad = object(2) // b is looked up there in vain, and in the file that has b
		got, err = get("d", "b")
		require.NoError(t, err)
		require.Equal(t, want[:2], got)
		for _, keys := range [][]string{{"d", "c"}, {"b", "a", "d"}} {
			_, err = get(keys...)
			require.ErrorIs(t, err, errRemoteFile)
		}
		bad = object(0)
		_, err = get("b", "c")
		require.ErrorIs(t, err, errRemoteFile, "it may have newer versions")
		s.fail.Store(nil)
		got, err = get("d", "b", "c", "a")
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, db.Close())
	})
}

// A store that is closed while requests are under way ends them.
func TestCloseWhileManyKeysAreFetched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRemoteStore()
		db, _ := s.fill(t, remoteOptions(), remoteYoung)
		keys := make([][]byte, 200)
		for i := range keys {
			keys[i] = storetest.ScatteredKey(nil, i)
		}
		s.near.Store(false)
		var reader sync.WaitGroup
		reader.Go(func() {
			_, err := db.MultiGet(keys)
			require.ErrorIs(t, err, context.Canceled)
		})
		time.Sleep(time.Second / 2)
		s.near.Store(true) // for what Close sends
		require.NoError(t, db.Close())
		reader.Wait()
	})
}
