package explorer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/cosmos/push"
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

// allContainers returns those of all documents.
func allContainers() []client.ContainerSpec {
	return slices.Concat(cosmos.Containers(), push.Containers(), objects.Containers())
}

// begin prepares the store and starts the parties.
func (w *world) begin() error {
	var err error
	if w.store, err = newStore(w.account()); err != nil {
		return err
	}
	db, err := client.Connect(client.Connection{Endpoint: w.store.engine.Endpoint(), Key: w.store.engine.Key(), Transport: w.store.engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	ctx := context.Background()
	if err := db.Provision(ctx, allContainers()); err != nil {
		return err
	}
	first := &stored{parts: make(map[partition][]int), parent: -1}
	if w.Prepare != nil {
		proc := &process{}
		w.store.told = nil
		w.Prepare(w.newMember(ctx, db, proc, w.options(99), preparer))
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
