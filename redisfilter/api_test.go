package redisfilter_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/mirror"
	"github.com/siftkv/siftkv/redisfilter/owners"
)

// What sets have in common is none of their users' business.
func TestSetsShowNothingOfTheirInside(t *testing.T) {
	for _, set := range []reflect.Type{
		reflect.TypeFor[redisfilter.Set](), reflect.TypeFor[redisfilter.Cuckoo](),
		reflect.TypeFor[redisfilter.Client](),
		reflect.TypeFor[owners.Sets](), reflect.TypeFor[owners.Set](), reflect.TypeFor[mirror.Mirror](),
	} {
		for _, f := range reflect.VisibleFields(set) {
			require.False(t, f.IsExported(), "%v has a field %s", set, f.Name)
		}
		for _, inside := range []string{"Refresh", "Inside", "View"} {
			_, ok := reflect.PointerTo(set).MethodByName(inside)
			require.False(t, ok, "%v shows %s", set, inside)
		}
	}
}
