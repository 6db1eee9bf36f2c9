package filterpolicy_test

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
)

func Example() {
	policy, err := filterpolicy.Parse("blocked:10")
	if err != nil {
		fmt.Println(err)
		return
	}

	// While a file is written: a hash for each key.
	b := policy.NewBuilder()
	for i := range 1000 {
		b.AddHash(filterpolicy.Hash(fmt.Appendf(nil, "key-%d", i)))
	}
	data, ok := b.Finish(nil)
	fmt.Println(len(data), ok)

	// When the file is opened: check the bytes once.
	filter, err := filterpolicy.Decode(policy.Name(), data)
	if err != nil {
		fmt.Println(err)
		return
	}

	// For each lookup: one hash, whatever the number of files.
	fmt.Println(filter.MayContainHash(filterpolicy.Hash([]byte("key-7"))))
	fmt.Println(filter.MayContainHash(filterpolicy.Hash([]byte("absent"))))
	// Output:
	// 1312 true
	// true
	// false
}

func ExampleParse() {
	for _, spec := range []string{"bloom:9.6", "cuckoo:12,4", "cuckoo:12,3"} {
		policy, err := filterpolicy.Parse(spec)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(policy)
	}
	// Output:
	// bloom:9.6
	// cuckoo:12
	// filterpolicy: bad spec "cuckoo:12,3": slots per bucket must be 2, 4 or 8, not "3"; for example "cuckoo:12,4"
}

func ExampleDecode() {
	_, err := filterpolicy.Decode("bloom", []byte("cut short"))
	fmt.Println(errors.Is(err, filterpolicy.ErrCorrupt))

	// A family of a later version: the file is read without its filter.
	_, err = filterpolicy.Decode("surf", []byte("..."))
	fmt.Println(errors.Is(err, filterpolicy.ErrUnknownFamily))
	// Output:
	// true
	// true
}

func ExampleExpected() {
	for _, spec := range []string{"none", "bloom:10", "blocked:10", "cuckoo:12"} {
		policy, err := filterpolicy.Parse(spec)
		if err != nil {
			fmt.Println(err)
			return
		}
		e := filterpolicy.Expected(policy, 1_000_000)
		fmt.Printf("%-10s %5.2f bits per key, %6.3f %% false positives\n", policy, e.BitsPerKey, 100*e.FPR)
	}
	// Output:
	// none        0.00 bits per key, 100.000 % false positives
	// bloom:10   10.00 bits per key,  0.819 % false positives
	// blocked:10 10.00 bits per key,  0.966 % false positives
	// cuckoo:12  12.63 bits per key,  0.185 % false positives
}

func ExampleBuild() {
	policy, err := filterpolicy.Parse("fuse:8")
	if err != nil {
		fmt.Println(err)
		return
	}
	words := []string{"apple", "pear", "plum", "apple"}
	set, err := filterpolicy.Build(policy, func(yield func([]byte) bool) {
		for _, w := range words {
			if !yield([]byte(w)) {
				return
			}
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Len(), set.Contains([]byte("pear")), set.Contains([]byte("quince")))
	// Output: 3 true false
}
