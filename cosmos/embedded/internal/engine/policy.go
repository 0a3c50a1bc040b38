package engine

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

const defaultPolicy = `{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}`

// A policy is the indexing policy of a container. It only affects charges and whether an ORDER BY is refused, because
// the engine has an index for ids only.
type policy struct {
	none       bool // true with indexing mode none
	root       *policyNode
	composites [][]composite
}

type composite struct {
	path       rawjson.Path
	descending bool
}

type inclusion int

const (
	unsaid inclusion = iota
	included
	excluded
)

// A policyNode is a node in the tree of paths. It tells whether the value at its path (/a/?) and the values below its
// path (/a/*) are indexed.
type policyNode struct {
	here, below inclusion
	next        map[string]*policyNode // children by property name; "[]" stands for all array elements
}

type pathJSON struct {
	Path string `json:"path"`
}

func parsePolicy(raw []byte) (*policy, error) {
	var p struct {
		Mode       string     `json:"indexingMode"`
		Automatic  *bool      `json:"automatic"`
		Included   []pathJSON `json:"includedPaths"`
		Excluded   []pathJSON `json:"excludedPaths"`
		Composites [][]struct {
			Path  string `json:"path"`
			Order string `json:"order"`
		} `json:"compositeIndexes"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, badRequest("indexingPolicy: %v", err)
	}
	if strings.EqualFold(p.Mode, "none") {
		return &policy{none: true, root: &policyNode{below: excluded}}, nil
	}
	if p.Mode != "" && !strings.EqualFold(p.Mode, "consistent") && !strings.EqualFold(p.Mode, "lazy") { // old accounts have the mode lazy
		return nil, badRequest("indexingPolicy: indexingMode %q is not supported; want consistent or none", p.Mode)
	}
	if p.Automatic != nil && !*p.Automatic {
		return nil, badRequest("indexingPolicy: automatic must be true unless indexingMode is none; manual indexing is not supported")
	}
	built := &policy{root: &policyNode{}}
	if len(p.Included) == 0 && len(p.Excluded) == 0 {
		p.Included = []pathJSON{{"/*"}}
	}
	for _, set := range []struct {
		paths []pathJSON
		says  inclusion
	}{{p.Included, included}, {p.Excluded, excluded}} {
		for _, path := range set.paths {
			if err := built.addPath(path.Path, set.says); err != nil {
				return nil, err
			}
		}
	}
	if built.root.below == unsaid {
		return nil, badRequest(`indexingPolicy: the mandatory path "/*" is neither included nor excluded`)
	}
	for _, index := range p.Composites {
		var paths []composite
		for _, part := range index {
			steps, err := splitPath(part.Path)
			if err != nil {
				return nil, err
			}
			paths = append(paths, composite{steps, strings.EqualFold(part.Order, "descending")})
		}
		built.composites = append(built.composites, paths)
	}
	return built, nil
}

func (p *policy) addPath(path string, says inclusion) error {
	at := p.root
	body, below := strings.CutSuffix(path, "/*")
	if path == "/" { // old tutorials use / for all paths
		body, below = "", true
	}
	if !below {
		var exact bool
		if body, exact = strings.CutSuffix(path, "/?"); !exact {
			return badRequest("indexingPolicy: path %q must end with /? or /*", path)
		}
	}
	steps, err := splitPath(body)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if at.next == nil {
			at.next = map[string]*policyNode{}
		}
		if at.next[step.Name] == nil {
			at.next[step.Name] = &policyNode{}
		}
		at = at.next[step.Name]
	}
	where := &at.here
	if below {
		where = &at.below
	}
	if *where != unsaid && *where != says {
		return badRequest("indexingPolicy: path %q is both included and excluded", path)
	}
	*where = says
	return nil
}

// splitPath parses a path such as /a/"b c"/[]; the empty path and / are the document.
func splitPath(path string) (rawjson.Path, error) {
	steps := rawjson.Path{}
	for rest := path; rest != "" && rest != "/"; {
		if rest[0] != '/' || len(rest) < 2 {
			return nil, badRequest("path %q is not valid", path)
		}
		name, after := rest[1:], ""
		if name[0] == '"' {
			end := strings.IndexByte(name[1:], '"')
			if end < 0 {
				return nil, badRequest("path %q is not valid", path)
			}
			name, after = name[1:end+1], name[end+2:]
		} else if end := strings.IndexByte(name, '/'); end >= 0 {
			name, after = name[:end], name[end:]
		}
		steps = append(steps, rawjson.Step{Name: name})
		rest = after
	}
	return steps, nil
}

// isIndexed reports whether the values at path are indexed. id and _ts are indexed under every policy
// except indexing mode none.
func (p *policy) isIndexed(path rawjson.Path) bool {
	if p.none || len(path) == 0 {
		return false
	}
	if len(path) == 1 && (path[0].Name == "id" || path[0].Name == "_ts") {
		return true
	}
	at, says := p.root, p.root.below
	for _, step := range path {
		name := step.Name
		if step.Array {
			name = "[]"
		}
		if at = at.next[name]; at == nil {
			return says == included
		}
		if at.below != unsaid {
			says = at.below
		}
	}
	if at.here != unsaid {
		says = at.here
	}
	return says == included
}

// checkOrder returns an error for an ORDER BY that Cosmos DB could not serve by an index.
func (p *policy) checkOrder(orders []query.Order) error {
	if len(orders) == 1 && !p.isIndexed(orders[0].Path) {
		return badRequest("The index path corresponding to the specified order-by item is excluded.")
	}
	if len(orders) < 2 || slices.ContainsFunc(p.composites, func(c []composite) bool { return hasOrder(c, orders) }) {
		return nil
	}
	return badRequest("The order by query does not have a corresponding composite index that it can be served from.")
}

// hasOrder reports whether a composite index has the paths of orders, with the same directions or with all of them
// reversed.
func hasOrder(index []composite, orders []query.Order) bool {
	if len(index) != len(orders) {
		return false
	}
	for i, c := range index {
		if !slices.Equal(c.path, orders[i].Path) ||
			(c.descending != orders[i].Descending) != (index[0].descending != orders[0].Descending) {
			return false
		}
	}
	return true
}

// systemTerms is the number of terms of id and _ts, which every indexed document has.
const systemTerms = 2

var termSeed = maphash.MakeSeed()

// A term is the hash of an indexed path and value.
type term uint64

// countTerms returns the number of index entries of a document without its system properties.
func (p *policy) countTerms(doc []byte) int {
	if p.none {
		return 0
	}
	n := systemTerms + len(p.composites)
	p.eachTerm(doc, func(uint64, []byte) { n++ })
	return n
}

// changedTerms returns the number of index entries that are removed or added when the document now
// replaces before.
func (p *policy) changedTerms(before, now []byte) int {
	old, latest := p.listTerms(before), p.listTerms(now)
	changed := 0
	for len(old) > 0 && len(latest) > 0 {
		switch {
		case old[0] == latest[0]:
			old, latest = old[1:], latest[1:]
		case old[0] < latest[0]:
			old = old[1:]
			changed++
		default:
			latest = latest[1:]
			changed++
		}
	}
	return changed + len(old) + len(latest)
}

func (p *policy) listTerms(doc []byte) []term {
	var terms []term
	p.eachTerm(doc, func(path uint64, value []byte) {
		terms = append(terms, term(maphash.Bytes(termSeed, value)^path))
	})
	slices.Sort(terms)
	return terms
}

// eachTerm calls visit for the indexed scalars of doc, except id.
func (p *policy) eachTerm(doc []byte, visit func(path uint64, value []byte)) {
	if p.none || p.root.below == excluded && len(p.root.next) == 0 {
		return
	}
	_ = rawjson.EachMember(doc, func(name, value []byte) bool { // cannot fail, because doc was checked to be an object
		if !rawjson.IsName(name, "id") {
			p.root.visitChild(string(name), name, p.root.below, 0, value, visit)
		}
		return true
	})
}

// visitChild visits the indexed scalars in value, which is the member or element name of the value
// at r. A nil r means that the policy has no node for that path.
func (r *policyNode) visitChild(name string, quoted []byte, says inclusion, path uint64, value []byte, visit func(uint64, []byte)) {
	var next *policyNode
	if r != nil && r.next != nil {
		if quoted != nil {
			text, _ := rawjson.Unquote(quoted)
			name = string(text)
		}
		next = r.next[name]
	}
	if next != nil && next.below != unsaid {
		says = next.below
	}
	if says == excluded && (next == nil || next.next == nil && next.here != included) {
		return
	}
	path = path*31 + maphash.String(termSeed, name)
	switch value[0] {
	case '{':
		_ = rawjson.EachMember(value, func(name, value []byte) bool {
			next.visitChild(string(name), name, says, path, value, visit)
			return true
		})
	case '[':
		_ = rawjson.EachElement(value, func(value []byte) bool {
			next.visitChild("[]", nil, says, path, value, visit)
			return true
		})
	default:
		if next != nil && next.here != unsaid {
			says = next.here
		}
		if says == included {
			visit(path, value)
		}
	}
}
