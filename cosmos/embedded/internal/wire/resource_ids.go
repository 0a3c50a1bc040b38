package wire

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// hasResourceIDs reports whether a path addresses its resources by resource ids, such as
// /dbs/AAAAAQ==/colls/AAAAAYAAAAI=, as the _self of every resource does.
func hasResourceIDs(segments []string) bool {
	return len(segments) >= 2 && segments[0] == "dbs" && engine.IsDatabaseRID(segments[1])
}

// signedResourceID returns, in lower case, the resource id that a signature covers, or "" if the
// path has no resource ids. For a feed, this is the id of the parent.
func signedResourceID(segments []string) string {
	if !hasResourceIDs(segments) {
		return ""
	}
	n := len(segments)
	if n == 6 && segments[4] == "operations" {
		n = 4
	}
	return strings.ToLower(segments[n-1-n%2])
}

// resolveNames replaces resource ids in the path with names. If a database has an id in the path as
// its name, the name takes precedence.
func (s *Server) resolveNames(r *serverRequest) error {
	p := r.segments
	if !hasResourceIDs(p) {
		return nil
	}
	if _, err := s.engine.Database(p[1]); err == nil {
		return nil
	}
	db := s.engine.DatabaseByRID(p[1])
	if db == nil {
		return nil // the request then fails like a request for an unknown name
	}
	p[1] = db.ID
	if len(p) < 4 || p[2] != "colls" {
		return nil
	}
	c := s.engine.ContainerByRID(p[1], p[3])
	if c == nil {
		return nil
	}
	p[3] = c.ID
	if len(p) != 6 || p[4] != "docs" {
		return nil
	}
	pk, err := c.ParsePartition(r.Header.Get("x-ms-documentdb-partitionkey"))
	if err != nil {
		return err
	}
	if id, ok := s.engine.DocumentByRID(c, pk, p[5]); ok {
		p[5] = id
	}
	return nil
}

// nameOwner sets the headers with the resource id and the path by names of the requested resource's
// parent. Clients store session tokens under these headers.
func (s *Server) nameOwner(r *serverRequest) {
	p := r.segments
	if len(p) < 3 || p[0] != "dbs" {
		return
	}
	db, err := s.engine.Database(p[1])
	if err != nil {
		return
	}
	rid, names := db.RID(), "dbs/"+url.PathEscape(db.ID)
	if len(p) >= 5 {
		c, err := s.engine.Container(p[1], p[3])
		if err != nil {
			return
		}
		rid, names = c.RID, names+"/colls/"+url.PathEscape(c.ID)
	}
	r.answer.Set("x-ms-content-path", rid)
	r.answer.Set("x-ms-alt-content-path", names)
}

// wrongContainer is the substatus of a request for a deleted container whose name a new container
// has.
const wrongContainer = 1024

// checkIntended refuses a request for a deleted container if c is a new container with the same
// name.
func checkIntended(r *serverRequest, c *engine.Container) error {
	if rid := r.Header.Get("x-ms-cosmos-intended-collection-rid"); rid != "" && rid != c.RID {
		return &engine.Error{
			Status: http.StatusBadRequest, SubStatus: wrongContainer,
			Message: "the container " + c.ID + " has resource id " + c.RID + ", not " + rid + ": it was created again; read it again",
		}
	}
	return nil
}
