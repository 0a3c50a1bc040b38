package survey

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Options of a Survey. The zero value fits one of several nodes.
type Options struct {
	// Exclusive says that only this process uses the store: another node in the state has ended.
	Exclusive bool
	Units     float64               // limit for the request units per second of the survey; 0: no limit
	Every     time.Duration         // between the starts of two rounds; default 10 s
	Retries   int                   // number of retries that the requests of one call share; default 24, negative: none
	Clock     func() time.Time      // default time.Now
	Random    func() uint64         // ids and jitter; default: the system's
	Logger    *slog.Logger          // default: none
	Registry  prometheus.Registerer // default: none
}

// The times of a survey.
const (
	everyDefault = 10 * time.Second
	flushAfter   = 20 * time.Second // interval between flushes while lines have changed
	beatAfter    = 30 * time.Second // interval between beats while no line has changed
	leaseTime    = 60 * time.Second // a node without a beat for this time is dead, by the clock of the observer
	lookEvery    = 20 * time.Second // interval between reads of another node's state
	freshFor     = 2 * time.Second  // time for which lists use the lines without a request
	stopWithin   = 5 * time.Second
	// feedMargin is the time before a walk at which the feeds begin. A query may miss documents that
	// were stored less than that ago.
	feedMargin = time.Minute
)

// The sizes of a survey.
const (
	pageSize    = 50    // documents in a page of a feed: about as many as may be read in a second
	walkPage    = 100   // documents in a page of a query
	maxPending  = 2_000 // limit for mailboxes with changed lines that are not stored
	maxLog      = 4_096 // documents
	maxParts    = 65_536
	compactFrom = 256     // documents of the log at which a snapshot begins
	minSnapshot = 256_000 // limit in bytes for a log without a snapshot of that size
)

// A Survey surveys the mailboxes of a store, if this node has the lease, and returns the lines in any
// case. Its methods are safe for concurrent use; Run is called once.
type Survey struct {
	client  *client.Client // paced
	readers *client.Client // for lists, which are not delayed by the limit
	db      *client.Database
	lines   *azcosmos.ContainerClient
	reader  Reader
	opts    Options
	owner   string // id of this process
	table   *mailboxTable
	owning  atomic.Bool

	mu      sync.Mutex // guards the fields below, which describe the content of table
	known   replica
	checked time.Time // when known was last compared with the state

	own   ownership    // used only by Run
	call  *client.Call // the last call of Run
	spent float64      // request units of earlier calls
}

var _ repository.Survey = (*Survey)(nil)

// An ownership is what the node that surveys has in memory besides the table.
type ownership struct {
	state   *surveyState // as stored; nil: another node surveys
	seen    ownerSighting
	since   time.Time
	tokens  map[string]string
	feeds   map[string]*client.Feed // by container; created on demand
	walk    *walkPosition
	at      time.Time
	pending map[domain.ActorID]bool // mailboxes with changed lines that are not stored
	flushed time.Time
	garbage []string // documents that the state does not name
	compact *compaction
	hasMore bool // the last round has not read all changes

	followed      map[followedID]followedVersion // versions that the feeds returned in the last minute
	followedSince time.Time                      // versions from before this time are unknown
	recheck       *recheckPosition               // is replaced, never changed
	rechecked     recheckProgress
	damaged       damagedLines
	incomplete    map[domain.ActorID]time.Time // mailboxes of which a stale document was read, and when to recheck them
	recheckAfter  time.Time                    // the next step of a recheck is not due before

	failure string // the failure that was logged last
}

// An ownerSighting records when a beat of the node that surveys was first seen.
type ownerSighting struct {
	owner string
	beat  int64
	at    time.Time
}

// New returns a Survey. It makes no request and starts no goroutine; Run does.
func New(db *client.Database, reader Reader, opts Options) *Survey {
	opts.Every = cmp.Or(opts.Every, everyDefault)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	s := &Survey{db: db, reader: reader, opts: opts, table: newTable(reader)}
	s.lines = s.containerClient(containerName)
	base := client.Options{Retries: opts.Retries, Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: opts.Registry}
	s.readers = client.New(db, base)
	base.BackgroundUnits = opts.Units
	s.client = client.New(db, base)
	s.owner = s.client.NewID()
	if opts.Registry != nil {
		opts.Registry.MustRegister(&collector{s})
	}
	return s
}

func (s *Survey) containerClient(name string) *azcosmos.ContainerClient {
	container, err := s.db.Container(name)
	if err != nil {
		panic(err) // only an empty name causes an error
	}
	return container
}

// beginCall returns a call that keeps to the limit of request units.
func (s *Survey) beginCall() *client.Call {
	if s.call != nil {
		s.spent += s.call.Units()
	}
	s.call = s.client.Begin("survey")
	s.call.SetBackground()
	return s.call
}

// spentUnits returns the request units that this node has spent on the survey.
func (s *Survey) spentUnits() float64 {
	if s.call == nil {
		return s.spent
	}
	return s.spent + s.call.Units()
}

// Run surveys while this node has the lease, until ctx ends. It logs failures, and the next round tries
// again.
func (s *Survey) Run(ctx context.Context) {
	for pause := s.firstPause(); client.Sleep(ctx, pause); {
		began := s.opts.Clock()
		isOwner, err := s.Round(ctx)
		s.logFailure(ctx, err)
		pause = lookEvery + s.client.Jitter(lookEvery/4)
		switch {
		case isOwner && err == nil && s.own.hasMore:
			pause = 0
		case isOwner:
			pause = max(s.opts.Every-max(s.opts.Clock().Sub(began), 0), s.opts.Every/4)
		}
	}
	s.giveAway(ctx)
}

// firstPause returns a random pause, so that nodes that start together do not claim the survey at the
// same time.
func (s *Survey) firstPause() time.Duration {
	if s.opts.Exclusive {
		return 0
	}
	return s.client.Jitter(time.Second)
}

// Round makes one round of the survey if this node has the lease, and reports whether it has. Run calls
// it; a program that calls it does not call Run.
func (s *Survey) Round(ctx context.Context) (bool, error) {
	if s.own.state == nil {
		if err := s.claimSurvey(ctx); err != nil || s.own.state == nil {
			return false, err
		}
	}
	err := s.readRound(ctx)
	switch {
	case errors.Is(err, errTaken):
		s.loseOwnership()
		return false, nil
	case errors.Is(err, client.ErrFeedLost):
		s.opts.Logger.WarnContext(ctx, "a change feed cannot continue; the survey reads all mailboxes again", "error", err)
		s.beginWalk()
		err = nil
	}
	return true, err
}

// readRound reads the changes, or all mailboxes if they have not been read yet.
func (s *Survey) readRound(ctx context.Context) error {
	if s.own.walk != nil {
		if err := s.walkMailboxes(ctx); err != nil {
			return err
		}
	}
	hasMore, err := s.follow(ctx)
	if err != nil {
		return err
	}
	s.own.hasMore = hasMore
	if err := s.compact(ctx); err != nil || hasMore {
		return err
	}
	return s.recheck(ctx)
}

// logFailure logs a failure, unless it is the one that was logged last.
func (s *Survey) logFailure(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != s.own.failure && ctx.Err() == nil {
		s.opts.Logger.WarnContext(ctx, "the survey of mailboxes failed; it is repeated", "error", err)
	}
	s.own.failure = text
}

// IsOwner reports whether this node surveys.
func (s *Survey) IsOwner() bool { return s.owning.Load() }
