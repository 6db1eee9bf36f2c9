package models

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

func TestModelWithALocalLog(t *testing.T) {
	t.Parallel()
	modelHistories(t, storetest.ModelSeeds/3, 2028, func(r *modelRun) {
		r.fs, r.objects, r.localLog = vfs.NewMem(), objstore.NewMem(), true
	})
}

// Histories with operands, range tombstones, snapshots, values that expire and transactions.
func TestMultiGetModelInAnObjectStore(t *testing.T) {
	t.Parallel()
	multiGetModel(t, storetest.ModelSeeds/10, func(r *modelRun) { r.objects = objstore.NewMem() })
}

// Histories in stores whose files have parts of all sizes: smaller than a block, and larger than a file.
func TestModelInPartsOfAnObjectStore(t *testing.T) {
	t.Parallel()
	modelHistories(t, storetest.ModelSeeds/3, 2028, func(r *modelRun) {
		r.objects, r.part = objstore.NewMem(), 1<<r.rng.IntN(18)
	})
}

func TestModelWithSeparatedValuesInAnObjectStore(t *testing.T) {
	t.Parallel()
	modelHistories(t, storetest.ModelSeeds/3, 2029, func(r *modelRun) {
		r.objects, r.separated, r.part = objstore.NewMem(), true, 1<<r.rng.IntN(18)
		if r.localLog = r.rng.IntN(2) == 0; r.localLog {
			r.fs = vfs.NewMem()
		}
	})
}

func TestModelInAnObjectStore(t *testing.T) {
	t.Parallel()
	modelHistories(t, storetest.ModelSeeds/3, 2027, func(r *modelRun) { r.objects = objstore.NewMem() })
}
