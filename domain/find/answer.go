package find

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Kind is what an id may name.
type Kind string

// The kinds.
const (
	Event    Kind = "event"
	Bundle   Kind = "bundle"
	Request  Kind = "request"  // of the hub to a domain, for the content of a bundle
	Delivery Kind = "delivery" // of a message to a subscription
	Trace    Kind = "trace"
	Save     Kind = "save" // of a result: the events of a cabinet that a span of the trace has saved

	// Published is an event that was published to a topic. It is looked for if a query has the id of
	// its message.
	Published Kind = "published"
)

// Kinds are all kinds of ids.
var Kinds = []Kind{Event, Bundle, Request, Delivery, Trace, Published}

// An Answer is what is known of an id.
type Answer struct {
	ID      string
	Results []Result
	Looked  Looked
	After   string // continues the search, as Query.After; "": everything was looked at
}

// Looked is what was looked at, together with the answers before that this one continues.
type Looked struct {
	Kinds     []Kind   // that the id may name
	Found     int      // results
	Mailboxes int      // in which an event, or a trace, was looked for
	Unread    int      // of them, or of their parts, that could not be read
	Damage    []Unread // those of this answer
	Notes     []string // what was not looked at, or is not stored, and why; each a sentence
}

// Unread is a mailbox that could not be read, or a part of it.
type Unread = repository.UnreadMailbox

// IsUnknown reports whether everything was looked at and read, and nothing was found.
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
	Actor domain.ActorID // zero: of a delivery
	Title string         // what it is, in a few words
	Steps []Step         // in order of time
	Waits []Wait         // the first one has to end first; none: it waits for nothing
	Notes []string       // what is not known of it, and why; each a sentence
}

// A State is what has become of an event or a bundle. That of a delivery is the one of package
// inspect.
type State string

// The states.
const (
	StateSaving   State = "saving"   // a Save that is under way has stored the event
	StateWaiting  State = "waiting"  // for a Peek
	StateOpen     State = "open"     // in an open bundle
	StateDequeued State = "dequeued" // its actor has confirmed it
	StateSkipped  State = "skipped"  // an operator has closed its bundle
	StateReleased State = "released" // an operator has taken the bundle back
	StatePassed   State = "passed"   // its bundle is no longer stored

	StatePublished State = "published" // of an event of a topic
	StateAccepted  State = "accepted"  // of a Save
)

// A StepKind is what has happened.
type StepKind string

// The kinds of steps.
const (
	StepAccepted  StepKind = "accepted"
	StepOpened    StepKind = "opened"   // a bundle, by a Peek
	StepFailed    StepKind = "failed"   // a domain, to make content
	StepAnswered  StepKind = "answered" // by a domain, with content
	StepLost      StepKind = "lost"     // the content was deleted
	StepReleased  StepKind = "released"
	StepSkipped   StepKind = "skipped"
	StepReplayed  StepKind = "replayed"
	StepLooked    StepKind = "looked" // an operator, at the payloads of a bundle
	StepDequeued  StepKind = "dequeued"
	StepNotified  StepKind = "notified" // a domain, of a Dequeue
	StepFrozen    StepKind = "frozen"   // the mailbox
	StepPublished StepKind = "published"
	StepAttempt   StepKind = "attempt" // of a delivery
)

// A Step is something that has happened.
type Step struct {
	What    StepKind
	At      time.Time // zero: it is not stored when
	Text    string    // a sentence
	Details []Detail
}

// A Detail is a name and a value.
type Detail struct{ Name, Value string }

// sortSteps orders steps by time. One without a time, or with one before that of the step that it
// follows from, stays behind that.
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
