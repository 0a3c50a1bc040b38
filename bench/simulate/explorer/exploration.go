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

// An exploration explores one scenario. It runs in a bubble of testing/synctest.
type exploration struct {
	*Scenario
	store   *effectStore
	players []*partyPlayer

	stores      []*storeState
	knownStore  map[string]int
	states      []explorationState
	parents     []stateOrigin
	knownStates map[stateKey]int
	ends        map[string]bool
	preparation []commitChanges // commits of the scenario's preparation
	observed    map[[2]string]error
	events      []sight // answers to the actions of the scenario's preparation

	Result
}

// A Result is the size of an exploration, and the violation that it found.
type Result struct {
	Scenario    string
	States      int
	Transitions int
	Depth       int // number of steps of the longest path to an end
	Width       int // maximum number of choices in a state
	Stores      int // number of different states of the store
	Histories   int // number of different histories, summed over the parties
	Ends        int // number of checked ends
	Exhausted   bool
	Violation   error // first violation with the shortest path to it; nil if none was found
}

// A storeState is one state of the store. For each partition it has the number of the current content, and the numbers
// of the earlier contents that a stale read may return.
type storeState struct {
	parts   map[partition][]int
	intents []string // all intents announced so far, because an ended intent is no longer in a document
	parent  int
	commit  commitChanges // commit that led to the state; nil for the first state
}

// An explorationState is a state of the exploration, with the number of steps to it.
type explorationState struct {
	store  int
	nodes  [3]*partyHistory
	lost   int
	stale  int
	claims int
	dead   [3]bool // parties that are known to have crashed
	depth  int
}

type stateKey struct {
	store               int
	nodes               [3]int
	lost, stale, claims int
	dead                [3]bool
}

// A stateOrigin is the step that first led to a state.
type stateOrigin struct {
	from int
	step string
}

func (x *exploration) keyOf(s *explorationState) stateKey {
	k := stateKey{store: s.store, lost: s.lost, stale: s.stale, claims: s.claims, dead: s.dead}
	for i, n := range s.nodes {
		k.nodes[i] = -1
		if n != nil {
			k.nodes[i] = n.id
		}
	}
	return k
}

// Explore visits all states of a scenario, or stops when enough returns true. It must be called in a bubble of
// testing/synctest.
func Explore(s *Scenario, enough func() bool) (Result, error) {
	x := &exploration{
		Scenario: s, knownStore: make(map[string]int), knownStates: make(map[stateKey]int),
		ends: make(map[string]bool), observed: make(map[[2]string]error),
	}
	x.Result.Scenario = s.Name
	defer func() {
		for _, p := range x.players {
			p.endProcesses()
		}
	}()
	if err := x.prepareStore(); err != nil {
		return x.Result, err
	}
	defer func() { _ = x.store.engine.Close() }()
	err := x.exploreStates(enough)
	x.States, x.Stores, x.Ends = len(x.states), len(x.stores), len(x.ends)
	for _, p := range x.players {
		x.Histories += len(p.nodes)
	}
	return x.Result, err
}

func (s *Scenario) accountOptions() embedded.Options {
	o := embedded.Options{Consistency: "Strong"}
	if s.Session {
		o.Consistency = "Session"
	}
	return o
}

// allContainers returns the containers that the scenarios use.
func allContainers() []client.ContainerSpec {
	return slices.Concat(cosmos.Containers(), push.Containers(), objects.Containers())
}

// prepareStore prepares the store, and starts the parties.
func (x *exploration) prepareStore() error {
	var err error
	if x.store, err = newStore(x.accountOptions()); err != nil {
		return err
	}
	db, err := client.Connect(client.Connection{Endpoint: x.store.engine.Endpoint(), Key: x.store.engine.Key(), Transport: x.store.engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	ctx := context.Background()
	if err := db.Provision(ctx, allContainers()); err != nil {
		return err
	}
	first := &storeState{parts: make(map[partition][]int), parent: -1}
	if x.Prepare != nil {
		proc := &partyProcess{}
		x.store.commits = nil
		x.Prepare(x.newMember(ctx, db, proc, x.nodeOptions(99), preparer))
		x.events = proc.sights
		for _, commit := range slices.Clone(x.store.commits) {
			p := partition{commit[0].Container, string(commit[0].Partition)}
			l := x.store.loadedPartitionOf(p)
			id, changes, err := x.store.noteCommit(l, commit)
			if err != nil {
				return err
			}
			first.parts[p] = x.newChain(id, first.parts[p])
			x.preparation = append(x.preparation, changes)
		}
	}
	x.internStore(first)
	begin := explorationState{claims: x.Claims, lost: x.Lost, stale: x.Stale}
	for i := range x.Parties {
		p := &partyPlayer{engine: x.store.engine, scenario: x.Scenario, party: i, known: make(map[string]*partyHistory)}
		x.players = append(x.players, p)
		if begin.nodes[i], err = p.startParty(); err != nil {
			return err
		}
	}
	x.addState(&begin, stateOrigin{from: -1})
	return nil
}

func (x *exploration) contentOf(s *storeState, p partition) int {
	if chain := s.parts[p]; len(chain) > 0 {
		return chain[0]
	}
	return 0
}

func (x *exploration) internStore(s *storeState) int {
	var text strings.Builder
	for _, p := range slices.SortedFunc(maps.Keys(s.parts), func(a, b partition) int {
		return strings.Compare(a.container+a.key, b.container+b.key)
	}) {
		fmt.Fprintf(&text, "%s %s %v\n", p.container, p.key, s.parts[p])
	}
	fmt.Fprint(&text, s.intents)
	if id, ok := x.knownStore[text.String()]; ok {
		return id
	}
	x.stores = append(x.stores, s)
	x.knownStore[text.String()] = len(x.stores) - 1
	return len(x.stores) - 1
}

// addState adds a state, unless it was visited before.
func (x *exploration) addState(s *explorationState, o stateOrigin) {
	k := x.keyOf(s)
	if _, ok := x.knownStates[k]; ok {
		return
	}
	x.knownStates[k] = len(x.states)
	x.states = append(x.states, *s)
	x.parents = append(x.parents, o)
}

func (x *exploration) exploreStates(enough func() bool) error {
	for at := 0; at < len(x.states); at++ {
		if enough() {
			return nil
		}
		s := x.states[at]
		x.Depth = max(x.Depth, s.depth)
		if err := x.checkEnd(&s); err != nil {
			return x.noteViolation(at, "", err)
		}
		choices := x.choicesOf(&s)
		x.Width = max(x.Width, len(choices))
		for _, c := range choices {
			x.Transitions++
			next, step, err := x.takeChoice(&s, c)
			if v := (*invariantError)(nil); errors.As(err, &v) {
				return x.noteViolation(at, step, v.err)
			}
			if err != nil {
				return err
			}
			x.addState(next, stateOrigin{at, step})
		}
	}
	x.Exhausted = true
	return nil
}

// An invariantError reports that the hub broke an invariant, as opposed to an error of the explorer.
type invariantError struct{ err error }

func (v *invariantError) Error() string { return v.err.Error() }

// noteViolation records a violation with the path to it.
func (x *exploration) noteViolation(at int, last string, err error) error {
	var way []string
	if last != "" {
		way = append(way, last)
	}
	for ; x.parents[at].from >= 0; at = x.parents[at].from {
		way = append(way, x.parents[at].step)
	}
	slices.Reverse(way)
	for i := range way {
		way[i] = fmt.Sprintf("%3d  %s", i+1, way[i])
	}
	x.Violation = fmt.Errorf("%s: after %d steps\n%s\n%w", x.Name, len(way), strings.Join(way, "\n"), err)
	return nil
}
