package wire

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// hasResourceIDs reports whether a path consists of resource ids, as in _self links. Example:
// /dbs/AAAAAQ==/colls/AAAAAYAAAAI=.
func hasResourceIDs(segments []string) bool {
	return len(segments) >= 2 && segments[0] == "dbs" && engine.IsDatabaseRID(segments[1])
}

// signedResourceID returns the resource id that a client signs, in lower case. It returns "" if the path has no
// resource ids. For a feed, it is the parent's id.
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

// resolveNames replaces resource ids in the path with names. If an id is also the name of a database, it is treated as
// the name.
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
		return nil // the request will fail like one with an unknown name
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

// nameOwner sets headers with the resource id and the path of the resource's parent, under which clients store session
// tokens.
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

// wrongContainer is the substatus of a request for a deleted container, if a new one has the same name.
const wrongContainer = 1024

// checkIntended returns an error if the request is for a deleted container and c is a new one of the same name.
func checkIntended(r *serverRequest, c *engine.Container) error {
	if rid := r.Header.Get("x-ms-cosmos-intended-collection-rid"); rid != "" && rid != c.RID {
		return &engine.Error{
			Status: http.StatusBadRequest, SubStatus: wrongContainer,
			Message: "the container " + c.ID + " has resource id " + c.RID + ", not " + rid + ": it was created again; read it again",
		}
	}
	return nil
}
