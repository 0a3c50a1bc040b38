package docs

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Generate implements parser.IDs of goldmark.
func (h headingIDs) Generate(heading []byte, _ ast.NodeKind) []byte {
	return []byte(h.nextID(string(heading)))
}

// Put implements parser.IDs of goldmark.
func (h headingIDs) Put([]byte) {}

// renderByLibrary returns the HTML of a Markdown text, rendered by goldmark, which supports all of
// Markdown.
func renderByLibrary(t *testing.T, markdown string) string {
	t.Helper()
	library := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	document := library.Parser().Parse(text.NewReader([]byte(markdown)), parser.WithContext(parser.NewContext(parser.WithIDs(make(headingIDs)))))
	var b bytes.Buffer
	require.NoError(t, library.Renderer().Render(&b, []byte(markdown), document))
	return b.String()
}

func rawTarget(target string) (string, bool) { return target, true }

func TestRender_EqualsALibraryOnEachPage(t *testing.T) {
	for _, p := range Pages() {
		require.Equal(t, renderByLibrary(t, p.text), renderPage(p.text, rawTarget), "%s uses Markdown that package docs does not render", p.file)
	}
}

func TestRender_EqualsALibraryOnEachElement(t *testing.T) {
	for _, markdown := range []string{
		"# One\n\nText of\ntwo lines.\n\n## Two `code`\n### Two `code`\n",
		"a < b && \"c\" > d\n",
		"`a < b`, **strong `code`**, *em*, 2 * 3 * 4 and `*`\n",
		"[text `code`](a.md#b), [x] (y) and [ ]\n",
		"```sh\na < b  \n\n  c\n```\nAfter.\n",
		"```\nno language\n```\n",
		"- one\n- two\n  lines\n- three\n\nAfter.\n",
		"- one\n\n- two\n\n  more\n",
		"1. one\n2. two\n\n   ```sh\n   code\n\n   more\n   ```\n3. three\n",
		"- one\n  - inner\n  - inner\n- two\n",
		"Text:\n- one\n- two\n",
		"| a | b |\n| --- | --- |\n| `x` | **y** |\n| | [z](w.md) |\n\nAfter.\n",
	} {
		require.Equal(t, renderByLibrary(t, markdown), renderPage(markdown, rawTarget), "%q", markdown)
	}
}

var hrefPattern = regexp.MustCompile(`href="([^"]*)"`)

// get returns the response of a site to a request.
func get(t *testing.T, s *Site, name string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	answer, request := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs/"+name, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	require.True(t, s.Serve(answer, request, name), "%q", name)
	return answer
}

func TestSite_HasTheTargetsOfItsLinks(t *testing.T) {
	for _, s := range []*Site{ForOperators(), ForClients()} {
		for name, f := range s.files {
			for _, match := range hrefPattern.FindAllStringSubmatch(string(f.body), -1) {
				target, id, hasID := strings.Cut(strings.TrimPrefix(match[1], "./"), "#")
				below := ""
				if name == IndexWithoutSlash {
					below = "docs/"
				}
				if strings.HasPrefix(target, "https://") || target == path.Join(below, "../openapi.yaml") {
					continue
				}
				if target == "" && hasID {
					target = name
				} else {
					require.True(t, strings.HasPrefix(target, below), "%s links to %s", name, match[1])
					target = strings.TrimPrefix(target, below)
				}
				linked, exists := s.files[target]
				require.True(t, exists, "%s links to %s", name, match[1])
				if hasID {
					require.Contains(t, string(linked.body), `id="`+id+`"`, "%s links to %s", name, match[1])
				}
			}
		}
	}
}

func TestSite_OfClientsHasOnlyTheGuide(t *testing.T) {
	for _, p := range Pages() {
		require.NotEmpty(t, get(t, ForOperators(), p.Topic).Body.String())
		_, exists := ForClients().files[p.Topic]
		require.Equal(t, !p.ForOperator, exists, p.Topic)
		require.Equal(t, !p.ForOperator, strings.Contains(get(t, ForClients(), "").Body.String(), p.Title))
	}
}

func TestSite_RunsNoScriptAndLoadsNothingFromElsewhere(t *testing.T) {
	for name := range ForOperators().files {
		answer := get(t, ForOperators(), name)
		require.Contains(t, answer.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
		require.NotRegexp(t, `<script|<img|<iframe|style="| on[a-z]+="|@import|url\(`, answer.Body.String(), name)
	}
}

func TestSite_SendsAPageOnce(t *testing.T) {
	first := get(t, ForOperators(), "actors")
	require.Equal(t, http.StatusOK, first.Code)
	again := get(t, ForOperators(), "actors", "If-None-Match", "W/"+first.Header().Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Empty(t, again.Body.String())
}

func TestPages_HaveUniqueTitlesSummariesAndTopics(t *testing.T) {
	seen := make(map[string]bool)
	for _, p := range Pages() {
		require.False(t, seen[p.Topic], "two pages about %s", p.Topic)
		seen[p.Topic] = true
		require.Regexp(t, `^# `, p.text, p.file)
		require.NotEmpty(t, p.Title, p.file)
		require.Regexp(t, `\.$`, p.Summary, p.file)
	}
}

func TestPlain_SaysHowToOpenAnotherPage(t *testing.T) {
	page := Page{Topic: "actors", file: "api/guide/actors.md", text: "[Errors](errors.md), [one](errors.md#busy), [here](#top), [site](https://example.org/) and [code](../doc.go).\n```\n[x](errors.md)\n```\n"}
	require.Equal(t, "Errors (messagehub help errors), one (messagehub help errors, busy), here, site (https://example.org/) and code.\n```\n[x](errors.md)\n```\n", page.Plain())
}
