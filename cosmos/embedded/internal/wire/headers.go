package wire

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// refusedHeaders maps unsupported x-ms headers that change the meaning of a response to the reason for refusing them.
// All other unknown headers are ignored.
var refusedHeaders = map[string]string{
	"X-Ms-Cosmos-Changefeed-Wire-Format-Version":        "the form of the documents in a change feed differs",
	"X-Ms-Cosmos-Collection-Truncate":                   "the container would lose its documents",
	"X-Ms-Cosmos-Offer-Autopilot-Tier":                  "the throughput would be that of a tier; use x-ms-cosmos-offer-autopilot-settings",
	"X-Ms-Documentdb-Usepolygonssmallerthanahemisphere": "the engine has no spatial functions",
	"X-Ms-End-Id":                "the results would end at this id",
	"X-Ms-Enumeration-Direction": "the order of results differs",
	"X-Ms-Offer-Type":            "the throughput would be that of a performance level; use x-ms-offer-throughput",
	"X-Ms-Start-Id":              "the results would start at this id",
}

// consistencyRank ranks the consistency levels. A request can only choose a weaker level than the account's.
var consistencyRank = map[string]int{"Strong": 4, "BoundedStaleness": 3, "Session": 2, "ConsistentPrefix": 1, "Eventual": 0}

// checkHeaders returns an error for an unsupported header that would change the meaning of the response.
func (s *Server) checkHeaders(r *serverRequest) error {
	for name, reason := range refusedHeaders {
		if value := r.Header.Get(name); value != "" && !strings.EqualFold(value, "false") {
			return badRequest("header %s is not supported by the embedded engine: %s", strings.ToLower(name), reason)
		}
	}
	for _, name := range []string{"x-ms-cosmos-supported-serialization-formats", "x-ms-documentdb-content-serialization-format"} {
		if formats := r.Header.Get(name); formats != "" && !strings.Contains(strings.ToLower(formats), "jsontext") {
			return badRequest("header %s: %s is not supported by the embedded engine: answers are JsonText", name, formats)
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

// parseConsistency returns the consistency that a read requires.
func (s *Server) parseConsistency(r *serverRequest) (c engine.Consistency, err error) {
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

// sessionToken formats the session token for one physical partition.
func sessionToken(at *engine.Range, written uint64) string {
	return at.ID + ":-1#" + strconv.FormatUint(written, 10)
}

// sessionTokens formats the session token after a read of the range at. If at is nil, it covers all ranges.
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

// parseSession parses comma-separated session tokens and returns the highest write number. Because the whole account
// has one sequence of writes, a token stays valid when its range splits.
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

// isQuery reports whether the request is a query, for which clients use one of two headers.
func (r *serverRequest) isQuery() bool {
	return r.isSet("x-ms-documentdb-query") || r.isSet("x-ms-documentdb-isquery")
}

func (r *serverRequest) wantsMinimal() bool {
	return strings.EqualFold(r.Header.Get("Prefer"), "return=minimal")
}
