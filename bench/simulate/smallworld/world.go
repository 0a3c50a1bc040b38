package smallworld

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/steps"
	"github.com/messagehub/messagehub/bench/simulate/truth"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A world is the exploration of one scenario. It runs in a bubble.
type world struct {
	*Scenario
	store   *store
	players []*player

	stores     []*stored
	knownStore map[string]int
	states     []state
	parents    []origin
	known      map[worldKey]int
	ends       map[string]bool
	past       []commit // of the preparation
	observed   map[[2]string]error
	events     []sight // of the preparation

	Result
}

// A Result says how much there was to explore.
type Result struct {
	Scenario    string
	States      int
	Transitions int
	Depth       int // steps of the longest way to an end
	Width       int // most choices in one state
	Stores      int // different contents of the store
	Histories   int // of all parties
	Ends        int // that were checked
	Exhausted   bool
	Violation   error // with the shortest way to it
}

// A stored is one content of the store: for each partition what it holds, and what it
// held before as far as stale reads go.
type stored struct {
	parts   map[partition][]int
	intents []string // every one that was ever announced, for what is over leaves no trace
	parent  int
	commit  commit // by which it came about; nil: it is the first
}

// A state is one point of the exploration.
type state struct {
	store  int
	nodes  [3]*history
	lost   int
	stale  int
	claims int
	dead   [3]bool // parties that are known to have crashed
	depth  int
}

type worldKey struct {
	store               int
	nodes               [3]int
	lost, stale, claims int
	dead                [3]bool
}

// An origin is how a state was reached first.
type origin struct {
	from int
	step string
}

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

func (w *world) key(s *state) worldKey {
	k := worldKey{store: s.store, lost: s.lost, stale: s.stale, claims: s.claims, dead: s.dead}
	for i, n := range s.nodes {
		k.nodes[i] = -1
		if n != nil {
			k.nodes[i] = n.id
		}
	}
	return k
}

// Explore goes through all states of a scenario, until it is enough.
// It has to be called in a bubble of testing/synctest.
func Explore(s *Scenario, enough func() bool) (Result, error) {
	w := &world{
		Scenario: s, knownStore: make(map[string]int), known: make(map[worldKey]int),
		ends: make(map[string]bool), observed: make(map[[2]string]error),
	}
	w.Result.Scenario = s.Name
	defer func() {
		for _, p := range w.players {
			p.stop()
		}
	}()
	if err := w.begin(); err != nil {
		return w.Result, err
	}
	defer func() { _ = w.store.engine.Close() }()
	err := w.explore(enough)
	w.States, w.Stores, w.Ends = len(w.states), len(w.stores), len(w.ends)
	for _, p := range w.players {
		w.Histories += len(p.nodes)
	}
	return w.Result, err
}

func (s *Scenario) account() embedded.Options {
	o := embedded.Options{Consistency: "Strong"}
	if s.Session {
		o.Consistency = "Session"
	}
	return o
}

// begin prepares the store and starts the parties.
func (w *world) begin() error {
	var err error
	if w.store, err = newStore(w.account()); err != nil {
		return err
	}
	db, err := cosmos.Connect(cosmos.Connection{Endpoint: w.store.engine.Endpoint(), Key: w.store.engine.Key(), Transport: w.store.engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	ctx := context.Background()
	if err := db.Provision(ctx); err != nil {
		return err
	}
	first := &stored{parts: make(map[partition][]int), parent: -1}
	if w.Prepare != nil {
		proc := &process{}
		w.store.told = nil
		w.Prepare(&Member{ctx: ctx, scenario: w.Scenario, proc: proc, node: cosmos.New(db, w.content(), w.options(99))})
		w.events = proc.saw
		for _, told := range slices.Clone(w.store.told) {
			p := partition{told[0].Container, string(told[0].Partition)}
			l := w.store.loadingOf(p)
			id, changes, err := w.store.take(l, told)
			if err != nil {
				return err
			}
			first.parts[p] = w.chained(id, first.parts[p])
			w.past = append(w.past, changes)
		}
	}
	w.internStore(first)
	begin := state{claims: w.Claims, lost: w.Lost, stale: w.Stale}
	for i := range w.Parties {
		p := &player{engine: w.store.engine, scenario: w.Scenario, party: i, known: make(map[string]*history)}
		w.players = append(w.players, p)
		if begin.nodes[i], err = p.start(); err != nil {
			return err
		}
	}
	w.add(&begin, origin{from: -1})
	return nil
}

func (w *world) contentOf(s *stored, p partition) int {
	if chain := s.parts[p]; len(chain) > 0 {
		return chain[0]
	}
	return 0
}

func (w *world) internStore(s *stored) int {
	var text strings.Builder
	for _, p := range slices.SortedFunc(maps.Keys(s.parts), func(a, b partition) int {
		return strings.Compare(a.container+a.key, b.container+b.key)
	}) {
		fmt.Fprintf(&text, "%s %s %v\n", p.container, p.key, s.parts[p])
	}
	fmt.Fprint(&text, s.intents)
	if id, ok := w.knownStore[text.String()]; ok {
		return id
	}
	w.stores = append(w.stores, s)
	w.knownStore[text.String()] = len(w.stores) - 1
	return len(w.stores) - 1
}

// add notes a state, unless it is known.
func (w *world) add(s *state, o origin) {
	k := w.key(s)
	if _, ok := w.known[k]; ok {
		return
	}
	w.known[k] = len(w.states)
	w.states = append(w.states, *s)
	w.parents = append(w.parents, o)
}

func (w *world) explore(enough func() bool) error {
	for at := 0; at < len(w.states); at++ {
		if enough() {
			return nil
		}
		s := w.states[at]
		w.Depth = max(w.Depth, s.depth)
		if err := w.end(&s); err != nil {
			return w.violated(at, "", err)
		}
		choices := w.choices(&s)
		w.Width = max(w.Width, len(choices))
		for _, c := range choices {
			w.Transitions++
			next, step, err := w.take(&s, c)
			if v := (*violation)(nil); errors.As(err, &v) {
				return w.violated(at, step, v.err)
			}
			if err != nil {
				return err
			}
			w.add(next, origin{at, step})
		}
	}
	w.Exhausted = true
	return nil
}

// A violation is an invariant that the hub has broken, and no fault of the explorer.
type violation struct{ err error }

func (v *violation) Error() string { return v.err.Error() }

// violated notes a violation together with the way to it.
func (w *world) violated(at int, last string, err error) error {
	var way []string
	if last != "" {
		way = append(way, last)
	}
	for ; w.parents[at].from >= 0; at = w.parents[at].from {
		way = append(way, w.parents[at].step)
	}
	slices.Reverse(way)
	for i := range way {
		way[i] = fmt.Sprintf("%3d  %s", i+1, way[i])
	}
	w.Violation = fmt.Errorf("%s: after %d steps\n%s\n%w", w.Name, len(way), strings.Join(way, "\n"), err)
	return nil
}

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
	o := truth.New(w.capacity())
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
