package pebbletablefilter_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/keyfilter"
	"github.com/siftkv/siftkv/filterpolicy/pebbletablefilter"
)

// The two filter types of Pebble's that have a public name, as the stand-in has them.
type (
	tablePolicy  = pebbletablefilter.TableFilterPolicy
	tableDecoder = pebbletablefilter.TableFilterDecoder
)

type adapter = pebbletablefilter.Adapter[tablePolicy, tableDecoder]

func newAdapter(t *testing.T) *adapter {
	t.Helper()
	a, err := pebbletablefilter.New(tablePolicy.NewWriter, tableDecoder.Family)
	require.NoError(t, err)
	return a
}

// parse returns the policy of a spec.
func parse(t *testing.T, spec string) filterpolicy.Policy {
	t.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(t, err)
	return p
}

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return all
}

// Every family's tables are written and read through the interfaces: no key is lost, and absent
// keys are not searched for.
func TestEveryFamily(t *testing.T) {
	a, keys := newAdapter(t), names("key", 3000)
	for _, family := range filterpolicy.Families()[1:] {
		p := parse(t, examples[family])
		require.Equal(t, keyfilter.Prefix+examples[family], a.Policy(p).Name())
		table := pebbletablefilter.WriteTable(a.Policy(p), keys)
		name, data := table.Filter()
		require.Equal(t, keyfilter.Prefix+family, name, "tables change hands between the adapters")
		require.NotEmpty(t, data)
		for _, k := range keys {
			found, _ := table.Get(a.Decoders(), k)
			require.True(t, found, "%s lost %s", p, k)
		}
		searches := 0
		for _, k := range names("kez", 3000) {
			found, searched := table.Get(a.Decoders(), k)
			require.False(t, found)
			if searched {
				searches++
			}
		}
		require.Less(t, searches, 120, "%s: 4 % of absent keys", p)
	}
}

var examples = map[string]string{
	"bloom": "bloom:10", "blocked": "blocked:10", "cuckoo": "cuckoo:12", "ribbon": "ribbon:7",
	"gcs": "gcs:7", "quotient": "quotient:7", "xor": "xor:8", "fuse": "fuse:8",
}

// A table's bytes are those of the released interface.
func TestBytesAreThoseOfTheRelease(t *testing.T) {
	a, keys := newAdapter(t), names("key", 100)
	p := parse(t, "blocked:10")
	released, ok := keyfilter.New(p) // as pebblefilter has it
	require.True(t, ok)
	w := released.NewWriter()
	for _, k := range keys {
		w.AddKey([]byte(k))
	}
	_, data := pebbletablefilter.WriteTable(a.Policy(p), keys).Filter()
	require.Equal(t, w.Finish(nil), data)
}

func TestNoFilter(t *testing.T) {
	a, keys := newAdapter(t), names("key", 10)
	for _, p := range []filterpolicy.Policy{parse(t, "none"), foreign{}} {
		table := pebbletablefilter.WriteTable(a.Policy(p), keys)
		_, data := table.Filter()
		require.Empty(t, data)
		found, searched := table.Get(a.Decoders(), "key00003")
		require.True(t, found && searched)
	}
}

// A foreign policy makes filters that no decoder of this package reads.
type foreign struct{ filterpolicy.Policy }

func (foreign) Name() string   { return "foreign" }
func (foreign) String() string { return "foreign" }

// A Pebble whose interfaces have moved on is refused with the interface's name.
func TestOtherInterfaces(t *testing.T) {
	type family string
	type plain interface {
		Name() string
		NewWriter() int
	}
	type wider interface {
		Name() string
		NewWriter() error
	}
	for want, got := range map[string]func() error{
		"TableFilterWriter": func() error {
			_, err := pebbletablefilter.New(plain.NewWriter, tableDecoder.Family)
			return err
		},
		"TableFilterPolicy": func() error {
			_, err := pebbletablefilter.New(func(wider) any { return nil }, tableDecoder.Family)
			return err
		},
		"TableFilterDecoder": func() error {
			_, err := pebbletablefilter.New(func(any) any { return nil },
				func(error) family { return family(strconv.Itoa(1)) })
			return err
		},
	} {
		require.ErrorContains(t, got(), "its "+want+" has other methods")
	}
}

func ExampleNew() {
	// With Pebble in place of the stand-in: pebble.TableFilterPolicy, pebble.TableFilterDecoder.
	siftkv, err := pebbletablefilter.New(tablePolicy.NewWriter, tableDecoder.Family)
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := filterpolicy.Parse("blocked:10")
	if err != nil {
		fmt.Println(err)
		return
	}
	table := pebbletablefilter.WriteTable(siftkv.Policy(policy), []string{"apple", "cherry"})
	family, data := table.Filter()
	fmt.Println(family, len(data))
	fmt.Println(table.Get(siftkv.Decoders(), "banana"))
	// Output:
	// siftkv.blocked 96
	// false false
}
