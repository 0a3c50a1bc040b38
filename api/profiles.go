package api

import (
	"bytes"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
)

// profilesPath is the path of the profiles of the process. The hub omits some profiles of
// net/http/pprof: cmdline, because a flag may contain a secret by mistake; symbol, because profiles
// contain their symbols; and profiles that the process does not record.
const profilesPath = "/debug/pprof/{profile}"

const (
	cpuProfile     = "profile"
	profileSeconds = 30 // default duration of a CPU profile in seconds
	maxProfile     = 60
)

// profile responds with a profile, in the format of pprof or, with the parameter debug, as text.
func (s *Server) profile(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "seconds", "debug")
	if err != nil {
		return err
	}
	seconds, err := numberOf(values.Get("seconds"), "seconds", profileSeconds, 1, maxProfile)
	if err != nil {
		return err
	}
	debug, err := numberOf(values.Get("debug"), "debug", 0, 0, 2)
	if err != nil {
		return err
	}
	name := pathparam.Value(r, "profile")
	var body bytes.Buffer // the body is buffered, so that a slow client does not prolong the profile
	switch name {
	case cpuProfile:
		debug = 0
		err = s.profileCPU(r, &body, time.Duration(seconds)*time.Second)
	case "allocs", "goroutine", "heap":
		err = pprof.Lookup(name).WriteTo(&body, debug)
	default:
		return refuse(noRoute, "This hub has no profile with this name. It has allocs, goroutine, heap and %s, the profile of the CPU.", cpuProfile)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	_, _ = w.Write(body.Bytes()) // Write fails if the client has disconnected
	return nil
}

// profileCPU records a CPU profile for the duration span, or until the client disconnects or the
// server drains.
func (s *Server) profileCPU(r *http.Request, body *bytes.Buffer, span time.Duration) error {
	paceOf(r.Context()).extendDeadline(span)
	if pprof.StartCPUProfile(body) != nil {
		return refuse(busy, "A CPU profile is being recorded, and only one can be recorded at a time. Repeat the request later.")
	}
	defer pprof.StopCPUProfile()
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.draining.Done():
	case <-r.Context().Done():
	}
	return nil
}
