package term

import (
	"context"
	"io"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/meter"
)

// Show takes a sample each time that every has gone by, and shows it, until the context
// ends. It is the meter's only taker of samples.
func Show(ctx context.Context, out io.Writer, title string, m *meter.Meter, every time.Duration) {
	s := newScreen(out)
	s.begin(title)
	s.show(ctx, title, m, every)
}

// begin writes the title where samples are lines, and no picture repeats it.
func (s *screen) begin(title string) {
	if !s.live {
		s.print(title + "\n")
	}
}

// show is Show on a screen.
func (s *screen) show(ctx context.Context, title string, m *meter.Meter, every time.Duration) {
	start := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sample(title, m.Take(), time.Since(start))
		case <-ctx.Done():
			return
		}
	}
}

// sample shows one sample.
func (s *screen) sample(title string, now meter.Sample, since time.Duration) {
	if s.live {
		s.draw(s.present(title+" · "+since.Round(time.Second).String(), now))
		return
	}
	s.print(plain(now, since.Seconds()))
}

// Play plays a load and shows it, each second and at the end. It returns the load's report
// and what the service was asked while the load ran, as one sample. The error is that of load.Run.
func Play(
	ctx context.Context, out io.Writer, title string, m *meter.Meter, config load.Config,
) (load.Report, meter.Sample, error) {
	return newScreen(out).play(ctx, title, m, config)
}

// play is Play on a screen.
func (s *screen) play(
	ctx context.Context, title string, m *meter.Meter, config load.Config,
) (load.Report, meter.Sample, error) {
	l, err := load.New(config)
	if err != nil {
		return load.Report{}, meter.Sample{}, err
	}
	m.Play(l)
	s.begin(title)
	showing, stop := context.WithCancel(ctx)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		s.show(showing, title, m, time.Second)
	}()
	report, err := l.Run(ctx)
	stop()
	<-shown
	last := m.Take()
	last.PerSecond = last.Total.Over(report.Seconds)
	last.P50, last.P99 = report.Users.Latency.P50, report.Users.Latency.P99
	if s.live {
		s.draw(s.present(title, last))
	}
	s.print("\n" + s.summary(report) + "\n")
	return report, last, err
}
