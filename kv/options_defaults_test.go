package kv

import (
	"testing"
	"time"

	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/stretchr/testify/require"
)

func TestWaitForChangeByDefault(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want time.Duration
	}{
		{Options{}, 10 * time.Millisecond},
		{Options{PollInterval: time.Minute}, time.Minute},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}}, time.Second},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}, PollInterval: time.Minute}, time.Minute},
	} {
		o, err := c.o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want, o.PollInterval)
	}
}
