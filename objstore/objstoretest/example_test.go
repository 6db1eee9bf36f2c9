package objstoretest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// The reply to the second write of every key is lost.
func ExampleFaults() {
	s := objstoretest.NewFaults(objstore.NewMem(), 1)
	s.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.PutIfAbsent && c.Nth == 2 {
			return objstoretest.Fault{Outcome: objstoretest.LostReply}
		}
		return objstoretest.Fault{}
	})
	for range 3 {
		err := s.PutIfAbsent(context.Background(), "key", nil)
		fmt.Println(err == nil, errors.Is(err, objstore.ErrUnknown), errors.Is(err, objstore.ErrExists))
	}
	// Output:
	// true false false
	// false true false
	// false false true
}
