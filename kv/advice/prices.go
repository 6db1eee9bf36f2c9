package advice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/advise"
)

// timedReads is how many blocks are read to find out what a read takes.
const timedReads = 64

// remoteRead is the assumed time of a read from an object store. It is not measured, as requests are billed.
const remoteRead = 10 * time.Millisecond

// prices returns what parts of a lookup take here. A read of a block is measured unless the caller says what it takes.
func (l *locator) prices(o *Options) (advise.Prices, error) {
	p := advise.UsualPrices()
	p.MeasureProbes(append(slices.Concat(advise.DefaultFilters, o.Filters), l.store.Filters.Point.String())...)
	const probes = "probes of filters are measured here; "
	switch {
	case o.DeviceRead > 0:
		p.From = probes + fmt.Sprintf("a read of a block takes %v, as given", o.DeviceRead)
		return p.Device(float64(o.DeviceRead)), nil
	case l.store.Tables.Far:
		p.From = probes + fmt.Sprintf("a read is taken to be a request of %v", remoteRead)
		return p.Device(float64(remoteRead)), nil
	}
	read, err := l.timeReads()
	if read == 0 {
		p.From = probes + "blocks cost what is usual, as there are none"
		return p, err
	}
	p.From = probes + fmt.Sprintf("so is a read of a block, %v: from the page cache as far as that has them", read)
	return p.Device(p.Cached + float64(read)), err
}

// timeReads returns the median of reads of blocks, which are spread over the files; 0 if there are none.
func (l *locator) timeReads() (time.Duration, error) {
	blocks := uint64(0)
	for _, f := range l.shape.Files {
		blocks += f.Blocks
	}
	var took []time.Duration
	stride, next, before := max(blocks/timedReads, 1), uint64(0), uint64(0)
	for i, f := range l.shape.Files {
		for ; next < before+f.Blocks; next += stride {
			t, err := l.files[i].reader.TimeRead(int(next - before))
			if err != nil {
				return 0, err
			}
			took = append(took, t)
		}
		before += f.Blocks
	}
	if len(took) == 0 {
		return 0, nil
	}
	slices.Sort(took)
	return cmp.Or(took[len(took)/2], 1), nil
}
