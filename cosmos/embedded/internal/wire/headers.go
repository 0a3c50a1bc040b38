package wire

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// knownHeaders are the x-ms headers that the engine implements or may ignore.
var knownHeaders = map[string]bool{
	"X-Ms-Date":                                            true,
	"X-Ms-Version":                                         true,
	"X-Ms-Activity-Id":                                     true,
	"X-Ms-Cosmos-Correlated-Activityid":                    true,
	"X-Ms-Cosmos-Sdk-Supportedcapabilities":                true,
	"X-Ms-Client-Request-Id":                               true,
	"X-Ms-Return-Client-Request-Id":                        true,
	"X-Ms-Documentdb-Partitionkey":                         true,
	"X-Ms-Documentdb-Partitionkeyrangeid":                  true,
	"X-Ms-Read-Key-Type":                                   true,
	"X-Ms-Start-Epk":                                       true,
	"X-Ms-End-Epk":                                         true,
	"X-Ms-Documentdb-Is-Upsert":                            true,
	"X-Ms-Documentdb-Query":                                true,
	"X-Ms-Documentdb-Query-Enablecrosspartition":           true,
	"X-Ms-Documentdb-Isquery":                              true,
	"X-Ms-Documentdb-Query-Iscontinuationexpected":         true,
	"X-Ms-Documentdb-Query-Parallelizecrosspartitionquery": true,
	"X-Ms-Cosmos-Is-Query-Plan-Request":                    true,
	"X-Ms-Cosmos-Supported-Query-Features":                 true,
	"X-Ms-Cosmos-Query-Version":                            true,
	"X-Ms-Cosmos-Batch-Continue-On-Error":                  true,
	"X-Ms-Cosmos-Sdk-Version":                              true,
	"X-Ms-Useragent":                                       true,
	"X-Ms-Documentdb-Populatequerymetrics":                 true,
	"X-Ms-Cosmos-Populateindexmetrics":                     true,
	"X-Ms-Documentdb-Populatequotainfo":                    true,
	"X-Ms-Documentdb-Force-Query-Scan":                     true,
	"X-Ms-Documentdb-Responsecontinuationtokenlimitinkb":   true,
	"X-Ms-Max-Item-Count":                                  true,
	"X-Ms-Continuation":                                    true,
	"X-Ms-Session-Token":                                   true,
	"X-Ms-Consistency-Level":                               true,
	"X-Ms-Indexing-Directive":                              true,
	"X-Ms-Cosmos-Is-Batch-Request":                         true,
	"X-Ms-Cosmos-Batch-Atomic":                             true,
	"X-Ms-Cosmos-Batch-Ordered":                            true,
	"X-Ms-Cosmos-Priority-Level":                           true,
	"X-Ms-Cosmos-Throughput-Bucket":                        true,
	"X-Ms-Cosmos-Allow-Tentative-Writes":                   true,
	"X-Ms-Dedicatedgateway-Max-Age":                        true,
	"X-Ms-Dedicatedgateway-Bypass-Cache":                   true,
	"X-Ms-Offer-Throughput":                                true,
	"X-Ms-Cosmos-Offer-Autopilot-Settings":                 true,
	"X-Ms-Documentdb-Pre-Trigger-Include":                  true,
	"X-Ms-Documentdb-Post-Trigger-Include":                 true,
}

// consistencyRank orders the levels; a request may only relax its account's.
var consistencyRank = map[string]int{"Strong": 4, "BoundedStaleness": 3, "Session": 2, "ConsistentPrefix": 1, "Eventual": 0}

// checkHeaders refuses headers that may change the meaning of a request and that the engine
// does not implement.
func (s *Server) checkHeaders(r *serverRequest) error {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Ms-") && !knownHeaders[name] {
			return unsupportedError("header %s", strings.ToLower(name))
		}
	}
	if name := r.Header.Get("x-ms-documentdb-pre-trigger-include") + r.Header.Get("x-ms-documentdb-post-trigger-include"); name != "" {
		return badRequest("trigger %s does not exist; the embedded engine has no triggers", name)
	}
	if directive := r.Header.Get("x-ms-indexing-directive"); directive != "" && directive != "Default" && directive != "Include" {
		return unsupportedError("indexing directive %s", directive)
	}
	if level := r.Header.Get("x-ms-consistency-level"); level != "" {
		rank, ok := consistencyRank[level]
		if !ok {
			return badRequest("consistency level %q is unknown", level)
		}
		if rank > consistencyRank[s.consistency] {
			return badRequest("consistency level %s is stronger than the account's, which is %s", level, s.consistency)
		}
	}
	return nil
}

// consistencyOf returns the consistency of a read.
func (s *Server) consistencyOf(r *serverRequest) (c engine.Consistency, err error) {
	level := r.Header.Get("x-ms-consistency-level")
	if level == "" {
		level = s.consistency
	}
	c.Double = consistencyRank[level] >= consistencyRank["BoundedStaleness"]
	if token := r.Header.Get("x-ms-session-token"); token != "" {
		c.Session, err = parseSession(token)
	}
	return c, err
}

// sessionToken formats the session token of one physical partition.
func sessionToken(at *engine.Range, written uint64) string {
	return at.ID + ":-1#" + strconv.FormatUint(written, 10)
}

// sessionTokens formats the session token of a read of the range at, or of all ranges if at is
// nil.
func sessionTokens(c *engine.Container, at *engine.Range, written uint64) string {
	if at != nil {
		return sessionToken(at, written)
	}
	var all []string
	for i := range c.Ranges() {
		all = append(all, sessionToken(&c.Ranges()[i], written))
	}
	return strings.Join(all, ",")
}

// parseSession reads session tokens separated by commas, and returns the newest write number.
// All writes of the account share one sequence, so a token stays valid when its range splits.
func parseSession(token string) (newest uint64, err error) {
	for _, part := range strings.Split(token, ",") {
		_, lsn, ok := strings.Cut(part, "#")
		n, err := strconv.ParseUint(lsn, 10, 64)
		if !ok || err != nil {
			return 0, badRequest("the session token %q is not valid", token)
		}
		newest = max(newest, n)
	}
	return newest, nil
}

func activityID(r *http.Request) string {
	if id := r.Header.Get("x-ms-activity-id"); id != "" {
		return id
	}
	return uuid.NewString()
}

func (r *serverRequest) isSet(header string) bool {
	return strings.EqualFold(r.Header.Get(header), "true")
}

// isQuery reports whether the body is a query. Clients mark queries in two ways.
func (r *serverRequest) isQuery() bool {
	return r.isSet("x-ms-documentdb-query") || r.isSet("x-ms-documentdb-isquery")
}

func (r *serverRequest) wantsMinimal() bool {
	return strings.EqualFold(r.Header.Get("Prefer"), "return=minimal")
}
