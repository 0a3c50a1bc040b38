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
	Request  Kind = "request"  // Request is a content request to a domain
	Delivery Kind = "delivery" // Delivery is the delivery of a message to a subscription
	Trace    Kind = "trace"
	Save     Kind = "save" // Save is the events of a cabinet saved in one span of a trace; it occurs only in results

	// Published is an event that was published to a topic. Query.MessageID identifies it.
	Published Kind = "published"
)

// Kinds are the kinds that a Query can name.
var Kinds = []Kind{Event, Bundle, Request, Delivery, Trace, Published}

// An Answer contains the results of a search for an id.
type Answer struct {
	ID      string
	Results []Result
	Scope   Scope
	After   string // Query.After for the query that continues the search; "" if the search is complete
}

// Scope tells what was searched for this answer and for earlier answers of the same search.
type Scope struct {
	Kinds     []Kind   // kinds of objects that were searched
	Found     int      // number of results
	Mailboxes int      // number of mailboxes that were searched for an event or a trace
	Unread    int      // number of mailboxes, or parts of them, that could not be read
	Damage    []Unread // mailboxes, or parts of them, that could not be read for this answer
	Notes     []string // sentences about data that was not searched or is not stored
}

// Unread describes a mailbox, or a part of a mailbox, that could not be read.
type Unread = repository.UnreadMailbox

// IsUnknown reports whether nothing has the id: the search is complete, everything could be read, and there are no
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

// A Result is something that was found: an event, a bundle, a delivery or a Save.
type Result struct {
	Kind  Kind
	State State
	Actor domain.ActorID // recipient of the event or bundle; zero for a delivery
	Title string         // short description
	Steps []Step         // history, oldest step first
	Waits []Wait         // reasons why the result waits; the first must end first
	Notes []string       // sentences about unknown data
}

// A State is the state of a Result. A delivery has an [inspect.State]; all other states are listed below.
type State string

// The states.
const (
	StateSaving   State = "saving"   // the Save of the event has not ended
	StateWaiting  State = "waiting"  // the event waits for a Peek
	StateOpen     State = "open"     // the bundle is open
	StateDequeued State = "dequeued" // the actor dequeued the bundle
	StateSkipped  State = "skipped"  // an operator closed the bundle, and its events are not delivered again
	StateReleased State = "released" // an operator closed the bundle, and its events wait again
	StatePassed   State = "passed"   // the bundle is closed and no longer stored

	StatePublished State = "published" // only for an event of a topic
	StateAccepted  State = "accepted"  // only for a Save
)

// A StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	StepAccepted  StepKind = "accepted"
	StepOpened    StepKind = "opened"   // a Peek opened the bundle
	StepFailed    StepKind = "failed"   // the domain failed to produce the content
	StepAnswered  StepKind = "answered" // the domain produced the content
	StepLost      StepKind = "lost"     // the content was deleted
	StepReleased  StepKind = "released"
	StepSkipped   StepKind = "skipped"
	StepReplayed  StepKind = "replayed"
	StepRead      StepKind = "looked" // an operator read the payloads of the bundle
	StepDequeued  StepKind = "dequeued"
	StepNotified  StepKind = "notified" // the domain was notified of the Dequeue
	StepFrozen    StepKind = "frozen"   // the mailbox was frozen
	StepPublished StepKind = "published"
	StepAttempt   StepKind = "attempt" // the hub called the receiver of a delivery
)

// A Step is one entry in the history of a Result.
type Step struct {
	What    StepKind
	At      time.Time // zero if the time is not stored
	Text    string    // a sentence
	Details []Detail
}

// A Detail is a name and a value that describe a step.
type Detail struct{ Name, Value string }

// sortSteps sorts steps by time. A step that has no time, or an earlier time than the step before it, is sorted as if it
// had the time of that step, because a cause stands before its effects.
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
