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

// Options of a Survey. The zero value is valid for several nodes that share a store.
type Options struct {
	// Exclusive means that only this process uses the store. If the state names another node, that node
	// is dead.
	Exclusive bool
	Units     float64               // limit for the request units per second of the survey; 0: no limit
	Every     time.Duration         // interval between the starts of two rounds; default 10 s
	Retries   int                   // number of retries that the requests of one call share; default 24, negative: none
	Clock     func() time.Time      // default time.Now
	Random    func() uint64         // source of ids and jitter; default: the system's random numbers
	Logger    *slog.Logger          // default: none
	Registry  prometheus.Registerer // default: none
}

// Intervals and timeouts of a survey.
const (
	everyDefault  = 10 * time.Second
	flushAfter    = 20 * time.Second // interval between flushes while lines have changed
	beatAfter     = 30 * time.Second // interval between beats while no line has changed
	leaseTime     = 60 * time.Second // time without a beat, by the clock of the observer, after which a node is dead
	claimInterval = 20 * time.Second // interval at which a node checks whether it may take over the survey
	freshFor      = 2 * time.Second  // time for which lists use the lines in memory without a request
	stopTimeout   = 5 * time.Second
	// feedMargin is the maximum staleness of a query. The feeds begin this long before a walk, because the
	// walk may miss the latest writes.
	feedMargin = time.Minute
)

// Limits of a survey.
const (
	pageSize    = 50    // documents in a page of a feed: about the number that a survey may read in a second
	walkPage    = 100   // documents in a page of a query
	maxPending  = 2_000 // limit for changed lines that are not flushed yet
	maxLog      = 4_096 // limit for the documents of the log
	maxParts    = 65_536
	compactFrom = 256     // number of documents of the log at which a new snapshot begins
	minSnapshot = 256_000 // size of the log in bytes at which a new snapshot begins if the last snapshot is smaller
)

// A Survey maintains a line for each mailbox of a store while this node has the lease. Any node can read
// the lines. The methods of a Survey are safe for concurrent use. Run must be called only once.
type Survey struct {
	client  *client.Client // client for surveys, whose requests Options.Units limits
	readers *client.Client // client for lists, whose requests are not limited
	db      *client.Database
	lines   *azcosmos.ContainerClient
	reader  Reader
	opts    Options
	owner   string // id of this process
	table   *mailboxTable
	owning  atomic.Bool

	mu      sync.Mutex // guards known and checked, which describe the content of table
	known   replica
	checked time.Time // time of the last comparison of known with the stored state

	own   ownership    // used only by Run and Round
	call  *client.Call // last call that beginCall returned
	spent float64      // request units of the calls before call
}

var _ repository.Survey = (*Survey)(nil)

// An ownership contains the data that only the surveying node has in memory.
type ownership struct {
	state   *surveyState // last stored state; nil: another node surveys
	seen    ownerSighting
	since   time.Time
	tokens  map[string]string
	feeds   map[string]*client.Feed // feeds by container, created on demand
	walk    *walkPosition
	at      time.Time
	pending map[domain.ActorID]bool // mailboxes whose changed lines are not flushed yet
	flushed time.Time
	garbage []string // ids of documents that the state does not name
	compact *compaction
	hasMore bool // whether the feeds had more changes at the end of the last round

	followed      map[followedID]followedVersion // versions that the feeds returned in the last minute
	followedSince time.Time                      // time from which followed is complete
	recheck       *recheckPosition               // the recheckPosition is replaced as a whole, never changed in place
	rechecked     recheckProgress
	damaged       damagedLines
	incomplete    map[domain.ActorID]time.Time // when to recheck each mailbox of which a stale document was read
	recheckAfter  time.Time                    // earliest time of the next step of a recheck

	failure string // text of the last failure
}

// An ownerSighting records the time at which this node first read a beat of the node that surveys.
type ownerSighting struct {
	owner string
	beat  int64
	at    time.Time
}

// New returns a Survey. It makes no request and starts no goroutine.
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
		panic(err) // impossible: only an empty name causes an error
	}
	return container
}

// beginCall returns a call of the survey, whose requests Options.Units limits.
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

// Run surveys while this node has the lease, until ctx ends. It logs failures, and retries in the next
// round.
func (s *Survey) Run(ctx context.Context) {
	for pause := s.firstPause(); client.Sleep(ctx, pause); {
		began := s.opts.Clock()
		isOwner, err := s.Round(ctx)
		s.logFailure(ctx, err)
		pause = claimInterval + s.client.Jitter(claimInterval/4)
		switch {
		case isOwner && err == nil && s.own.hasMore:
			pause = 0
		case isOwner:
			pause = max(s.opts.Every-max(s.opts.Clock().Sub(began), 0), s.opts.Every/4)
		}
	}
	s.release(ctx)
}

// firstPause returns a random pause, so that nodes that start together do not claim the survey at the
// same time.
func (s *Survey) firstPause() time.Duration {
	if s.opts.Exclusive {
		return 0
	}
	return s.client.Jitter(time.Second)
}

// Round makes one round of the survey if this node has or acquires the lease, and reports whether this
// node surveys. Run calls it in a loop. A program that calls Round must not call Run.
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

// readRound finishes the walk if it has not ended, and then reads the changes in the feeds.
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

// logFailure logs a failure, unless the previous round failed in the same way.
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
