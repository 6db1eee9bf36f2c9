package redisfilter

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// What sets have in common is none of their users' business.
func TestSetsShowNothingOfTheirInside(t *testing.T) {
	for _, set := range []reflect.Type{
		reflect.TypeFor[Set](), reflect.TypeFor[Cuckoo](), reflect.TypeFor[Windows](), reflect.TypeFor[Mirror](),
		reflect.TypeFor[OwnerSet](), reflect.TypeFor[Client](),
	} {
		for _, f := range reflect.VisibleFields(set) {
			require.False(t, f.IsExported(), "%v has a field %s", set, f.Name)
		}
		_, ok := reflect.PointerTo(set).MethodByName("Refresh")
		require.False(t, ok, "%v is polled by whoever likes", set)
	}
}
