package filterpolicy_test

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
)

func ExampleParseRange() {
	policy, err := filterpolicy.ParseRange("cut:6")
	if err != nil {
		fmt.Println(err)
		return
	}

	// While a file is written: its keys, in order.
	b := policy.NewRangeBuilder()
	for i := range 1000 {
		b.AddKey(fmt.Appendf(nil, "reading/%05d0", i))
	}
	data, ok := b.Finish(nil)
	fmt.Println(ok)

	// When the file is opened: check the bytes once.
	filter, err := filterpolicy.DecodeRange(policy.Name(), data)
	if err != nil {
		fmt.Println(err)
		return
	}

	// For each scan: is there anything between its bounds?
	fmt.Println(filter.MayContainRange([]byte("reading/000410"), []byte("reading/000420")))
	fmt.Println(filter.MayContainRange([]byte("reading/000413"), []byte("reading/000418")))
	fmt.Println(filter.MayContainRange([]byte("settings/"), nil))
	// Output:
	// true
	// true
	// false
	// false
}

func ExampleExpectedRange() {
	for _, spec := range []string{"none", "cut:4", "cut:6", "cut:8"} {
		policy, err := filterpolicy.ParseRange(spec)
		if err != nil {
			fmt.Println(err)
			return
		}
		e := filterpolicy.ExpectedRange(policy, 1_000_000)
		fmt.Printf("%-6s %5.2f bits per key, %6.2f %% of narrow empty ranges pass\n", policy, e.BitsPerKey, 100*e.FPR)
	}
	// Output:
	// none    0.00 bits per key, 100.00 % of narrow empty ranges pass
	// cut:4  10.83 bits per key,   4.51 % of narrow empty ranges pass
	// cut:6  12.79 bits per key,   1.13 % of narrow empty ranges pass
	// cut:8  14.76 bits per key,   0.28 % of narrow empty ranges pass
}
