package find

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Kind is a kind of object that an id may identify.
type Kind string

// The kinds.
const (
	Event    Kind = "event"
	Bundle   Kind = "bundle"
	Request  Kind = "request"  // a content request to a domain
	Delivery Kind = "delivery" // the delivery of a message to a subscription
	Trace    Kind = "trace"
	Save     Kind = "save" // only in results: the events of a cabinet that were saved in one span of the trace

	// Published is an event that was published to a topic. A query identifies it by
	// Query.MessageID.
	Published Kind = "published"
)

// Kinds lists the kinds that a query can name.
var Kinds = []Kind{Event, Bundle, Request, Delivery, Trace, Published}

// An Answer has the results of a search for an id.
type Answer struct {
	ID      string
	Results []Result
	Scope   Scope
	After   string // Query.After for the query that continues the search; "": the search is complete
}

// Scope describes what was searched for this answer and for the answers that it continues.
type Scope struct {
	Kinds     []Kind   // kinds of objects that were searched
	Found     int      // number of results
	Mailboxes int      // number of mailboxes that were searched for an event or a trace
	Unread    int      // number of mailboxes, or parts of mailboxes, that could not be read
	Damage    []Unread // mailboxes, or parts of mailboxes, that this answer could not read
	Notes     []string // sentences about data that was not searched or is not stored
}

// Unread is a mailbox, or a part of a mailbox, that could not be read.
type Unread = repository.UnreadMailbox

// IsUnknown reports whether the search is complete, everything could be read, and there are no
// results.
func (a *Answer) IsUnknown() bool {
	return a.After == "" && a.Scope.Found == 0 && a.Scope.Unread == 0
}

func (a *Answer) add(r Result) {
	a.Results = append(a.Results, r)
	a.Scope.Found++
}

func (a *Answer) addUnread(unread ...Unread) {
	a.Scope.Unread += len(unread)
	a.Scope.Damage = append(a.Scope.Damage, unread...)
}

func (a *Answer) note(sentence string) {
	if !slices.Contains(a.Scope.Notes, sentence) {
		a.Scope.Notes = append(a.Scope.Notes, sentence)
	}
}

// A Result is an event, a bundle, a delivery or a Save that was found for the id in a Query.
type Result struct {
	Kind  Kind
	State State
	Actor domain.ActorID // recipient of the event or bundle; zero for a delivery
	Title string         // short description
	Steps []Step         // history, the oldest step first
	Waits []Wait         // what the event, bundle or delivery waits for, the first cause to end first
	Notes []string       // sentences about data that is not known
}

// A State is the state of a result. The state of a delivery is an [inspect.State]; the other states
// are below.
type State string

// The states.
const (
	StateSaving   State = "saving"   // the Save of the event is in progress
	StateWaiting  State = "waiting"  // the event waits for a Peek
	StateOpen     State = "open"     // the bundle is open
	StateDequeued State = "dequeued" // the actor dequeued the bundle
	StateSkipped  State = "skipped"  // an operator closed the bundle; its events are not delivered again
	StateReleased State = "released" // an operator closed the bundle; its events wait again
	StatePassed   State = "passed"   // the bundle is closed and no longer stored

	StatePublished State = "published" // only for an event of a topic
	StateAccepted  State = "accepted"  // only for a Save
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
	StepRead      StepKind = "looked" // an operator read the payloads of a bundle
	StepDequeued  StepKind = "dequeued"
	StepNotified  StepKind = "notified" // a domain was notified of a Dequeue
	StepFrozen    StepKind = "frozen"   // the mailbox was frozen
	StepPublished StepKind = "published"
	StepAttempt   StepKind = "attempt" // an attempt of a delivery
)

// A Step is one entry in the history of a result.
type Step struct {
	What    StepKind
	At      time.Time // time of the step; zero: the time is not stored
	Text    string    // a sentence
	Details []Detail
}

// A Detail is a named value of a step.
type Detail struct{ Name, Value string }

// sortSteps orders steps by time. A step without a time, or with a time before its cause, remains
// after the step that precedes it in steps.
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
