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

// A nextChoice is one possible next event in a state: the answer to a pending request, with or without a fault.
type nextChoice struct {
	party int
	r     *partyRequest
	kind  string // kind of the choice
	age   int    // number of commits that a stale read misses
}

// The kinds of choices.
const (
	noFault    = ""
	replyLost  = "reply lost"
	stale      = "stale"
	othersDead = "the others have died"
)

// choicesOf returns all choices in a state.
func (x *exploration) choicesOf(s *explorationState) []nextChoice {
	var all []nextChoice
	for i := range x.Parties {
		if !x.canProceed(s, i) {
			continue
		}
		for _, r := range s.nodes[i].pending {
			if r.name == steps.Claim && (s.claims == 0 || x.Parties[i].Patient) && x.canOtherProceed(s, i) {
				if x.canOthersBeDead(s, i) {
					all = append(all, nextChoice{party: i, r: r, kind: othersDead})
				}
				continue
			}
			all = append(all, nextChoice{party: i, r: r})
			if r.name.IsWrite() && s.lost > 0 {
				all = append(all, nextChoice{party: i, r: r, kind: replyLost})
			}
			if !r.name.IsWrite() && s.stale > 0 {
				for age := 1; age < len(x.stores[s.store].parts[r.partition]); age++ {
					all = append(all, nextChoice{party: i, r: r, kind: stale, age: age})
				}
			}
		}
	}
	return all
}

// canProceed reports whether party i may receive an answer: the party has a pending request, is not dead, and does not
// wait until a different party has finished.
func (x *exploration) canProceed(s *explorationState, i int) bool {
	if after := x.Parties[i].After; after > 0 && !s.nodes[after-1].done {
		return false
	}
	return len(s.nodes[i].pending) > 0 && !s.dead[i]
}

// canOthersBeDead reports whether all unfinished parties other than i may have crashed.
func (x *exploration) canOthersBeDead(s *explorationState, i int) bool {
	unfinished := 0
	for j := range x.Parties {
		if j != i && !s.nodes[j].done {
			unfinished++
		}
	}
	return unfinished <= x.Crashes
}

// canOtherProceed reports whether a party other than i may receive an answer to a request that is not a claim.
func (x *exploration) canOtherProceed(s *explorationState, i int) bool {
	for j := range x.Parties {
		if j != i && x.canProceed(s, j) && slices.ContainsFunc(s.nodes[j].pending, func(r *partyRequest) bool { return r.name != steps.Claim }) {
			return true
		}
	}
	return false
}

// takeChoice returns the state after a choice, and a description of the step.
func (x *exploration) takeChoice(s *explorationState, c nextChoice) (*explorationState, string, error) {
	step := fmt.Sprintf("%s: %s", x.Parties[c.party].Name, c.r.name)
	if c.kind != noFault {
		step += ", " + c.kind
	}
	next := *s
	next.depth++
	if c.kind == othersDead {
		for i := range x.Parties {
			next.dead[i] = next.dead[i] || i != c.party && !s.nodes[i].done
		}
	}
	from := x.stores[s.store]
	chain := from.parts[c.r.partition]
	content := x.contentOf(from, c.r.partition)
	if c.kind == stale {
		content = chain[c.age]
		next.stale--
	}
	e, err := x.store.applyRequest(content, c.r, x.mutateRequest)
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
		to := &storeState{parts: maps.Clone(from.parts), intents: addAnnounced(from.intents, e.changes), parent: s.store, commit: e.changes}
		to.parts[c.r.partition] = x.newChain(e.after, chain)
		if err := x.checkCommit(s.store, c.r, e.changes); err != nil {
			return nil, step, &invariantError{err}
		}
		next.store = x.internStore(to)
	}
	a := e.answer
	if c.kind == replyLost {
		a = lost
		next.lost--
	}
	next.nodes[c.party], err = x.players[c.party].playAnswer(s.nodes[c.party], c.r, a)
	return &next, step, err
}

// addAnnounced returns before, extended by the intents that a commit announces.
func addAnnounced(before []string, changes commitChanges) []string {
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

// newChain returns the current content of a partition, and the earlier contents that a stale read may return, newest
// first.
func (x *exploration) newChain(is int, before []int) []int {
	if x.Stale == 0 {
		return []int{is}
	}
	if len(before) == 0 {
		before = []int{0}
	}
	return append([]int{is}, before[:min(len(before), max(x.Behind, 1))]...)
}

// observers check the commits to all containers. Each commit writes to one container.
type observers struct {
	mailboxes *invariants.Observer
	push      *push.Observer

	objects *objects.Observer
}

// Commit checks a commit against the rules.
func (o *observers) Commit(changes commitChanges) error {
	known, err := containers.Find(changes[0].Container)
	switch {
	case err != nil:
		return err
	case known.Checker == containers.InvariantsPush:
		return o.push.Commit(changes)
	case known.Checker == containers.InvariantsObjects:
		return o.objects.Commit(changes)
	}
	return o.mailboxes.Commit(changes)
}

// checkCommit replays the commits of one path to the state of the store, and then checks a commit against the
// invariants.
func (x *exploration) checkCommit(from int, r *partyRequest, changes commitChanges) error {
	key := [2]string{fmt.Sprint(from), r.key}
	if err, ok := x.observed[key]; ok {
		return err
	}
	var way []commitChanges
	for at := from; x.stores[at].parent >= 0; at = x.stores[at].parent {
		way = append(way, x.stores[at].commit)
	}
	o := &observers{invariants.New(x.drawerCapacity()), push.New(push.Callbacks{}), objects.New()}
	o.objects.HasTopic = x.Topic
	if x.Requests {
		o.mailboxes.Deleted(firstObject)
	}
	if x.Forgets {
		o.objects.Forgets = forgetTimes
	}
	slices.Reverse(way)
	for _, c := range slices.Concat(x.preparation, way) {
		if err := o.Commit(c); err != nil {
			return fmt.Errorf("an earlier commit now violates a rule: %w", err)
		}
	}
	err := o.Commit(changes)
	x.observed[key] = err
	return err
}
