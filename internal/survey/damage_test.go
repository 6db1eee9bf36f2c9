package survey

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

func TestDamageOfJoinedErrors(t *testing.T) {
	err := errors.Join(&base.CorruptionError{File: "d/a", Offset: 3, What: "x"}, errors.Join(errors.New("y")))
	require.Equal(t, []Damage{{"a", 3, "x"}, {"f", -1, "y"}}, damageOf("f", err))
	require.Equal(t, "a at offset 3: x", Damage{"a", 3, "x"}.String())
}
