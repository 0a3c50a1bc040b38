package find

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Kind is the kind of thing that an id may name.
type Kind string

// The kinds.
const (
	Event    Kind = "event"
	Bundle   Kind = "bundle"
	Request  Kind = "request"  // of the hub to a domain, for the content of a bundle
	Delivery Kind = "delivery" // of a message to a subscription
	Trace    Kind = "trace"
	Save     Kind = "save" // only in results: the events of a cabinet that a span of the trace has saved

	// Published is an event that was published to a topic. It is searched for if a query has
	// the id of its message.
	Published Kind = "published"
)

// Kinds are all kinds of ids.
var Kinds = []Kind{Event, Bundle, Request, Delivery, Trace, Published}

// An Answer has the results for an id.
type Answer struct {
	ID      string
	Results []Result
	Looked  Looked
	After   string // Query.After to continue the search; "": the search is complete
}

// Looked describes the search so far, including the answers that this one continues.
type Looked struct {
	Kinds     []Kind   // kinds that the id may name
	Found     int      // number of results
	Mailboxes int      // number of mailboxes that were searched for an event or a trace
	Unread    int      // number of mailboxes, or parts of them, that could not be read
	Damage    []Unread // unread mailboxes in this answer
	Notes     []string // what was not searched or is not stored, and why; each a sentence
}

// Unread is a mailbox, or a part of one, that could not be read.
type Unread = repository.UnreadMailbox

// IsUnknown reports whether the search is complete, everything could be read, and there are no
// results.
func (a *Answer) IsUnknown() bool {
	return a.After == "" && a.Looked.Found == 0 && a.Looked.Unread == 0
}

func (a *Answer) add(r Result) {
	a.Results = append(a.Results, r)
	a.Looked.Found++
}

func (a *Answer) addUnread(unread ...Unread) {
	a.Looked.Unread += len(unread)
	a.Looked.Damage = append(a.Looked.Damage, unread...)
}

func (a *Answer) note(sentence string) {
	if !slices.Contains(a.Looked.Notes, sentence) {
		a.Looked.Notes = append(a.Looked.Notes, sentence)
	}
}

// A Result is one event, bundle or delivery with the id.
type Result struct {
	Kind  Kind
	State State
	Actor domain.ActorID // zero for a delivery
	Title string         // a short description
	Steps []Step         // in order of time
	Waits []Wait         // the first one has to end first; empty: it does not wait
	Notes []string       // what is not known about it, and why; each a sentence
}

// A State is the state of an event or a bundle. The state of a delivery is one of package
// inspect.
type State string

// The states.
const (
	StateSaving   State = "saving"   // the Save that stored the event is still under way
	StateWaiting  State = "waiting"  // it waits for a Peek
	StateOpen     State = "open"     // in an open bundle
	StateDequeued State = "dequeued" // its actor has confirmed it
	StateSkipped  State = "skipped"  // an operator has closed its bundle
	StateReleased State = "released" // an operator has taken the bundle back
	StatePassed   State = "passed"   // its bundle is no longer stored

	StatePublished State = "published" // the state of an event of a topic
	StateAccepted  State = "accepted"  // the state of a Save
)

// A StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	StepAccepted  StepKind = "accepted"
	StepOpened    StepKind = "opened"   // a Peek opened a bundle
	StepFailed    StepKind = "failed"   // a domain failed to produce content
	StepAnswered  StepKind = "answered" // a domain replied with content
	StepLost      StepKind = "lost"     // the content was deleted
	StepReleased  StepKind = "released"
	StepSkipped   StepKind = "skipped"
	StepReplayed  StepKind = "replayed"
	StepLooked    StepKind = "looked" // an operator looked at the payloads of a bundle
	StepDequeued  StepKind = "dequeued"
	StepNotified  StepKind = "notified" // a domain was notified of a Dequeue
	StepFrozen    StepKind = "frozen"   // the mailbox was frozen
	StepPublished StepKind = "published"
	StepAttempt   StepKind = "attempt" // an attempt of a delivery
)

// A Step is an event in the history of a result.
type Step struct {
	What    StepKind
	At      time.Time // zero: the time is not stored
	Text    string    // a sentence
	Details []Detail
}

// A Detail is a name and a value.
type Detail struct{ Name, Value string }

// sortSteps orders steps by time. A step without a time, or with a time before its cause, stays
// behind the step before it.
func sortSteps(steps []Step) {
	at := make(map[int]time.Time, len(steps))
	order := make([]int, len(steps))
	for i := range steps {
		order[i], at[i] = i, steps[i].At
		if i > 0 && at[i].Before(at[i-1]) {
			at[i] = at[i-1]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return at[a].Compare(at[b]) })
	sorted := make([]Step, len(steps))
	for i, from := range order {
		sorted[i] = steps[from]
	}
	copy(steps, sorted)
}
