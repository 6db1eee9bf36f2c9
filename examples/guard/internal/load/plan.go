package load

import "math/rand/v2"

// A want is what a visitor comes for.
type want int

// What visitors want.
const (
	wantAbsent want = iota // a user that does not exist
	wantUser               // a user
	wantName               // to know whether the name of a user is taken: it is
	wantSignUp             // a free name, and to be a user of that name
	wantFeed               // two pages of what a user has not seen yet
	wantBan                // to be banned, and to be forgiven
)

// A visit is what one visitor wants.
type visit struct {
	want want
	tag  uint64 // differs from visitor to visitor
	user int64  // whom it is about; 0: a new user, named after the tag
}

// A plan says what each visitor wants. It is immutable.
type plan struct {
	scenario  Scenario
	seed      uint64
	users     int
	attackers float64
}

func newPlan(c Config) plan {
	return plan{scenario: c.Scenario, seed: c.Seed, users: c.Users, attackers: c.Attackers}
}

// day is how many of a hundred visitors want what on a normal day.
var day = []struct {
	want  want
	share int
}{
	{wantUser, 76}, {wantAbsent, 2}, {wantName, 6}, {wantSignUp, 4}, {wantFeed, 10}, {wantBan, 2},
}

// visit returns what visitor i wants.
func (p plan) visit(i uint64) visit {
	random := rand.New(rand.NewPCG(p.seed, i))
	v := visit{want: wantUser, tag: scatter(i, p.seed)}
	switch p.scenario {
	case Attack:
		if random.Float64() < p.attackers {
			v.want = wantAbsent
		}
	case Normal:
		v.want = drawWant(random.IntN(100))
	}
	switch v.want {
	case wantAbsent:
		v.user = absentUser(v.tag)
	case wantUser, wantName, wantFeed:
		v.user = p.popular(random)
	}
	return v
}

// drawWant returns what the visitor wants who drew a number below 100.
func drawWant(drawn int) want {
	for _, d := range day {
		if drawn -= d.share; drawn < 0 {
			return d.want
		}
	}
	panic("the shares of a day do not add up to 100")
}

// popular draws a user by Zipf's law: the most popular tenth gets most of the visits.
func (p plan) popular(random *rand.Rand) int64 {
	const skew = 1.1
	return 1 + int64(rand.NewZipf(random, skew, 1, uint64(p.users-1)).Uint64())
}

// tagBits is the size of a tag: below 2^53, so that JSON keeps a user made of it.
const tagBits = 51

// scatter maps the visitors of one seed to different tags all over the place: each step has
// an inverse.
func scatter(i, seed uint64) uint64 {
	const mask = 1<<tagBits - 1
	x := (i + seed*0x9e3779b97f4a7c15) & mask
	x = (x ^ x>>26) * 0xbf58476d1ce4e5b9 & mask
	x = (x ^ x>>25) * 0x94d049bb133111eb & mask
	return x ^ x>>26
}

// absentUser returns a user who is none, above all who are.
func absentUser(tag uint64) int64 { return 1<<tagBits | int64(tag) }
