package api

import (
	"sync"
	"time"
)

// failedLogins counts the failed logins of operators, for each address and in total.
//
// In a window, an address may fail limit times, or once if all addresses together have reached the
// total limit. Further requests from the address are refused until its window ends, except for the
// tokens that allowGuess admits. An address without a failure is never refused, so it can log in
// with the right token whatever other addresses do. The number of addresses is limited to
// maxAddresses: a further address replaces the one whose window started first.
type failedLogins struct {
	limit int

	mu        sync.Mutex
	addresses map[string]*loginFailures
	all       loginFailures
}

// loginFailures are the failures of an address in one window.
type loginFailures struct {
	began time.Time
	n     int

	guessed time.Time // time when a wrong token was last compared although the address was refused
}

const (
	loginWindow      = time.Minute
	guessInterval    = time.Second
	totalLimitFactor = 10 // limit of all addresses together, as a multiple of the limit of one address
	maxAddresses     = 4096
	ipv6NetworkID    = 64 // prefix length in bits; one machine may have all addresses of such a network
)

func newFailedLogins(limit int) *failedLogins {
	return &failedLogins{limit: limit, addresses: make(map[string]*loginFailures)}
}

// timeLeft returns the rest of the window, or 0 after its end.
func (f *loginFailures) timeLeft(now time.Time) time.Duration {
	return max(0, loginWindow-now.Sub(f.began))
}

func (f *loginFailures) add(now time.Time) {
	if f.timeLeft(now) == 0 {
		f.began, f.n = now, 0
	}
	f.n++
}

// pause returns how long requests from address are refused, or 0 if they are accepted.
func (l *failedLogins) pause(address string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.addresses[address]
	if f == nil {
		return 0
	}
	left := f.timeLeft(now)
	if left == 0 {
		delete(l.addresses, address)
		return 0
	}
	limit := l.limit
	if l.all.timeLeft(now) > 0 && l.all.n >= totalLimitFactor*l.limit {
		limit = 1
	}
	if f.n < limit {
		return 0
	}
	return left
}

// allowGuess reports whether a token from a refused address may be compared. It admits at most one
// wrong token in each guessInterval.
func (l *failedLogins) allowGuess(address string, isRight bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.addresses[address]
	if f == nil {
		return true
	}
	if !f.guessed.IsZero() && now.Sub(f.guessed) < guessInterval {
		return false
	}
	if !isRight {
		f.guessed = now
	}
	return true
}

// fail counts a failed login from address.
func (l *failedLogins) fail(address string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.add(now)
	f := l.addresses[address]
	if f == nil {
		if len(l.addresses) >= maxAddresses {
			l.forget(now)
		}
		f = new(loginFailures)
		l.addresses[address] = f
	}
	f.add(now)
}

// forget removes the addresses whose windows have ended. If none exists, it removes the address
// whose window started first.
func (l *failedLogins) forget(now time.Time) {
	oldest := ""
	for address, f := range l.addresses {
		if f.timeLeft(now) == 0 {
			delete(l.addresses, address)
			continue
		}
		if o := l.addresses[oldest]; o == nil || f.began.Before(o.began) || f.began.Equal(o.began) && address < oldest {
			oldest = address
		}
	}
	if len(l.addresses) >= maxAddresses {
		delete(l.addresses, oldest)
	}
}
