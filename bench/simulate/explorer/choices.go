package explorer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants"
	"github.com/messagehub/messagehub/bench/simulate/invariants/objects"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// A choice is one thing that can happen next.
type choice struct {
	party int
	r     *request
	kind  string // one of those below
	age   int
}

// The kinds of choices.
const (
	asItIs    = ""
	replyLost = "reply lost"
	stale     = "stale"
	lastOne   = "the others have died"
)

// choices are what can happen in s.
func (w *world) choices(s *state) []choice {
	var all []choice
	for i := range w.Parties {
		if !w.mayGo(s, i) {
			continue
		}
		for _, r := range s.nodes[i].pending {
			if r.name == steps.Claim && (s.claims == 0 || w.Parties[i].Patient) && w.othersCanGo(s, i) {
				if w.mayAllBeDead(s, i) {
					all = append(all, choice{party: i, r: r, kind: lastOne})
				}
				continue
			}
			all = append(all, choice{party: i, r: r})
			if r.name.IsWrite() && s.lost > 0 {
				all = append(all, choice{party: i, r: r, kind: replyLost})
			}
			if !r.name.IsWrite() && s.stale > 0 {
				for age := 1; age < len(w.stores[s.store].parts[r.partition]); age++ {
					all = append(all, choice{party: i, r: r, kind: stale, age: age})
				}
			}
		}
	}
	return all
}

// mayGo reports whether a party has begun and is not done.
func (w *world) mayGo(s *state, i int) bool {
	if after := w.Parties[i].After; after > 0 && !s.nodes[after-1].done {
		return false
	}
	return len(s.nodes[i].pending) > 0 && !s.dead[i]
}

// mayAllBeDead reports whether all but one that are not done may have crashed.
func (w *world) mayAllBeDead(s *state, but int) bool {
	unfinished := 0
	for i := range w.Parties {
		if i != but && !s.nodes[i].done {
			unfinished++
		}
	}
	return unfinished <= w.Crashes
}

// othersCanGo reports whether anybody else has something under way that is not a
// claim, too.
func (w *world) othersCanGo(s *state, i int) bool {
	for j := range w.Parties {
		if j != i && w.mayGo(s, j) && slices.ContainsFunc(s.nodes[j].pending, func(r *request) bool { return r.name != steps.Claim }) {
			return true
		}
	}
	return false
}

// take makes a choice.
func (w *world) take(s *state, c choice) (*state, string, error) {
	step := fmt.Sprintf("%s: %s", w.Parties[c.party].Name, c.r.name)
	if c.kind != asItIs {
		step += ", " + c.kind
	}
	next := *s
	next.depth++
	if c.kind == lastOne {
		for i := range w.Parties {
			next.dead[i] = next.dead[i] || i != c.party && !s.nodes[i].done
		}
	}
	from := w.stores[s.store]
	chain := from.parts[c.r.partition]
	content := w.contentOf(from, c.r.partition)
	if c.kind == stale {
		content = chain[c.age]
		next.stale--
	}
	e, err := w.store.apply(content, c.r, w.mutate)
	if err != nil {
		return nil, step, fmt.Errorf("%s: %w", step, err)
	}
	if e.answer.status >= 400 {
		step += fmt.Sprintf(" (%d)", e.answer.status)
	}
	if len(e.changes) > 0 {
		if c.r.name == steps.Claim {
			next.claims = max(next.claims-1, 0)
		}
		to := &stored{parts: maps.Clone(from.parts), intents: announced(from.intents, e.changes), parent: s.store, commit: e.changes}
		to.parts[c.r.partition] = w.chained(e.after, chain)
		if err := w.observe(s.store, c.r, e.changes); err != nil {
			return nil, step, &violation{err}
		}
		next.store = w.internStore(to)
	}
	a := e.answer
	if c.kind == replyLost {
		a = lost
		next.lost--
	}
	next.nodes[c.party], err = w.players[c.party].answered(s.nodes[c.party], c.r, a)
	return &next, step, err
}

// announced returns the intents that were ever announced, after one more commit.
func announced(before []string, changes commit) []string {
	for _, c := range changes {
		var head struct {
			Intent struct {
				ID string `json:"id"`
			} `json:"intent"`
		}
		if c.ID != "head" || json.Unmarshal(c.JSON, &head) != nil || head.Intent.ID == "" || slices.Contains(before, head.Intent.ID) {
			continue
		}
		before = append(slices.Clone(before), head.Intent.ID)
		slices.Sort(before)
	}
	return before
}

// chained is what a partition holds, and held before.
func (w *world) chained(is int, before []int) []int {
	if w.Stale == 0 {
		return []int{is}
	}
	if len(before) == 0 {
		before = []int{0}
	}
	return append([]int{is}, before[:min(len(before), max(w.Behind, 1))]...)
}

// observers are those of all containers. A commit is of one container.
type observers struct {
	hub  *invariants.Observer
	push *push.Observer

	objects *objects.Observer
}

// Commit compares a commit with the rules.
func (o *observers) Commit(changes commit) error {
	known, err := containers.Find(changes[0].Container)
	switch {
	case err != nil:
		return err
	case known.Judge == containers.InvariantsPush:
		return o.push.Commit(changes)
	case known.Judge == containers.InvariantsObjects:
		return o.objects.Commit(changes)
	}
	return o.hub.Commit(changes)
}

// observe holds a commit to the invariants, on one way to the store that it changes.
func (w *world) observe(from int, r *request, changes commit) error {
	key := [2]string{fmt.Sprint(from), r.key}
	if err, ok := w.observed[key]; ok {
		return err
	}
	var way []commit
	for at := from; w.stores[at].parent >= 0; at = w.stores[at].parent {
		way = append(way, w.stores[at].commit)
	}
	o := &observers{invariants.New(w.capacity()), push.New(push.Witness{}), objects.New()}
	o.objects.HasTopic = w.Topic
	if w.Requests {
		o.hub.Deleted(firstObject)
	}
	if w.Forgets {
		o.objects.Forgets = forgettable
	}
	slices.Reverse(way)
	for _, c := range slices.Concat(w.past, way) {
		if err := o.Commit(c); err != nil {
			return fmt.Errorf("a commit on the way is wrong that was right before: %w", err)
		}
	}
	err := o.Commit(changes)
	w.observed[key] = err
	return err
}
