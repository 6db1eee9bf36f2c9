package advise

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The front has those of all settings that none beats, and no others.
func TestFrontIsThatOfComparingAll(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		all := make([]Prediction, 1+random.IntN(30))
		for i := range all {
			all[i] = Prediction{Memory: int64(random.IntN(12))}
			all[i].All = Cost{Operations: 1, Nanos: float64(random.IntN(12))}
		}
		want := map[[2]float64]bool{}
		for _, p := range all {
			beaten := false
			for _, q := range all {
				beaten = beaten || q.Memory <= p.Memory && q.Score() < p.Score() ||
					q.Memory < p.Memory && q.Score() <= p.Score()
			}
			if !beaten {
				want[[2]float64{float64(p.Memory), p.Score()}] = true
			}
		}
		got := map[[2]float64]bool{}
		front := Front(all, (*Prediction).Score)
		for i, p := range front {
			got[[2]float64{float64(p.Memory), p.Score()}] = true
			require.True(t, i == 0 || front[i-1].Memory < p.Memory && front[i-1].Score() > p.Score())
		}
		require.Equal(t, want, got)
	}
}
