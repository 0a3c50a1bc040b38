package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
)

// sampleBundle is the id of a bundle.
const sampleBundle = "0190b5c0-0000-4000-8000-00000000abcd"

// samplePath returns the path of a page, with sample values for the parameters of its pattern.
func (b *browser) samplePath(pattern string) string {
	name := "freeze"
	if strings.HasPrefix(pattern, "/dead-letters/") {
		name = "delete"
	}
	return "/console" + strings.NewReplacer("{actor}", actor, "{queue}", "events", "{number}", "1", "{bundle}", sampleBundle, "{order}", name).Replace(b.systems.samples().Replace(pattern))
}

var inlinePattern = regexp.MustCompile(` style="| on[a-z]+="|<script>|<style|javascript:`)

func TestPages_HaveTitleHeadingAndPolicy(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 3)
	b.peekAs(actor, sampleBundle)
	visitor := open(t)
	for _, path := range console.PathsOf(http.MethodGet) {
		if strings.HasPrefix(path, "/part/") || strings.HasPrefix(path, "/sign-in/") {
			continue
		}
		from := b
		if path == "/sign-in" {
			from = visitor
		}
		query := ""
		if strings.HasPrefix(path, "/dead-letters/") {
			query = "?reason=expired&after=0&through=3"
		}
		a := from.get(b.samplePath(path) + query).wants(http.StatusOK)
		require.Equal(t, console.Policy, a.header.Get("Content-Security-Policy"), path)
		require.Equal(t, "no-store", a.header.Get("Cache-Control"), path)
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"), path)
		require.Len(t, a.elements("h1"), 1, path)
		require.Len(t, a.elements("title"), 1, path)
		require.Equal(t, textOf(a.elements("h1")[0])+" · MessageHub", textOf(a.elements("title")[0]), path)
		require.NotRegexp(t, inlinePattern, a.body, path)
		require.Less(t, len(a.body), 100<<10, path)
		for _, form := range a.elements("form") {
			if attribute(form, "method") == "post" {
				require.NotEmpty(t, a.form(attribute(form, "action")).Get("form-token"), path)
			}
		}
		require.Equal(t, http.StatusOK, from.do(http.MethodHead, b.samplePath(path)+query, "").status, path)
	}
}

func TestPages_PolicyPermitsNothingInline(t *testing.T) {
	require.NotContains(t, console.Policy, "unsafe")
	require.Contains(t, console.Policy, "default-src 'none'")
	require.Contains(t, console.Policy, "frame-ancestors 'none'")
	require.Contains(t, console.Policy, "form-action 'self'")
}

func TestPages_OfAFormCanBeOpened(t *testing.T) {
	for _, path := range console.PathsOf(http.MethodPost) {
		require.Contains(t, console.PathsOf(http.MethodGet), path, "its text could not be shown again")
	}
}

func TestPages_AskToSignIn(t *testing.T) {
	b := open(t)
	for _, path := range console.PathsOf(http.MethodGet) {
		switch {
		case strings.HasPrefix(path, "/sign-in/"): // other tests cover these pages
		case path == "/sign-in":
			b.get(b.samplePath(path)).wants(http.StatusOK)
		case strings.HasPrefix(path, "/part/"):
			require.Equal(t, "true", b.get(b.samplePath(path)).wants(http.StatusNoContent).header.Get("HX-Refresh"))
		default:
			a := b.get(b.samplePath(path) + "?x=1").wants(http.StatusSeeOther)
			require.Equal(t, "/console/sign-in?next="+url.QueryEscape(b.samplePath(path)+"?x=1"), a.header.Get("Location"))
		}
	}
}

func TestForms_AreRefusedWithoutTheTokenOfTheSession(t *testing.T) {
	b := openSignedIn(t)
	other := open(t)
	other.signIn()
	foreign := other.get("/console/sign-out").form("/console/sign-out").Get("form-token")
	for _, path := range console.PathsOf(http.MethodPost) {
		for _, token := range []string{"", "x", foreign} {
			a := b.post(b.samplePath(path), url.Values{"form-token": {token}, "why": {"a test"}}).wants(http.StatusForbidden)
			require.Contains(t, a.text(), "The form is not from this session")
		}
	}
	b.get("/console/").wants(http.StatusOK)
}

func TestForms_OfAnotherSiteAreRefused(t *testing.T) {
	b := openSignedIn(t)
	for _, path := range console.PathsOf(http.MethodPost) {
		for _, header := range [][]string{
			{"Origin", "https://attacker.example"},
			{"Origin", "null"},
			{"Origin", "https://attacker.example", "Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site"},
		} {
			form := b.get("/console/sign-out").form("/console/sign-out")
			a := b.post(b.samplePath(path), form, header...).wants(http.StatusForbidden)
			require.Contains(t, a.text(), "The form is from another site")
			require.NotContains(t, strings.Join(a.header["Set-Cookie"], " "), "form-", "another site must not fill in forms")
		}
	}
	b.get("/console/").wants(http.StatusOK)
}

func TestPages_ThatDoNotExistHaveALinkToTheOverview(t *testing.T) {
	b := openSignedIn(t)
	a := b.get("/console/nothing<script>").wants(http.StatusNotFound)
	require.Contains(t, a.text(), "There is no such page")
	require.NotContains(t, a.body, "nothing<script>")
}

func TestRoot_LeadsToTheConsoleOnTheOperatorsListener(t *testing.T) {
	b := open(t)
	for _, path := range []string{"/", "/console"} {
		require.Equal(t, "/console/", b.get(path).wants(http.StatusSeeOther).header.Get("Location"))
	}
}

func TestForm_ThatIsTooLargeIsRefused(t *testing.T) {
	b := openSignedIn(t)
	b.post("/console/sign-out", url.Values{"x": {strings.Repeat("x", 70<<10)}}).wants(http.StatusRequestEntityTooLarge)
}

func TestSignIn_RefusesWrongTokens(t *testing.T) {
	b := open(t)
	form := b.get("/console/sign-in?next=/console/sign-out").form("/console/sign-in")
	form.Set("name", `<script>"Kim`)
	form.Set("token", "wrong")
	a := b.post("/console/sign-in", form).wants(http.StatusUnauthorized)
	require.Contains(t, a.text(), "This is not a token of the operators of this hub.")
	require.NotContains(t, a.body, "wrong<")
	require.Equal(t, `<script>"Kim`, a.form("/console/sign-in").Get("name"), "the name is kept")
	require.Empty(t, a.form("/console/sign-in").Get("token"))
	form.Set("name", " ")
	form.Set("token", adminToken)
	require.Contains(t, b.post("/console/sign-in", form).wants(http.StatusUnprocessableEntity).text(), "Type a name")
	b.get("/console/").wants(http.StatusSeeOther)
}

func TestSignIn_HasTheLimitOfFailedLogins(t *testing.T) {
	b := open(t)
	form := b.get("/console/sign-in").form("/console/sign-in")
	form.Set("name", "Kim")
	form.Set("token", "wrong")
	for range 10 {
		b.post("/console/sign-in", form).wants(http.StatusUnauthorized)
	}
	a := b.post("/console/sign-in", form).wants(http.StatusTooManyRequests)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.Contains(t, a.text(), "too many")
}

func TestSignIn_LeadsOnlyToPagesOfTheConsole(t *testing.T) {
	for next, want := range map[string]string{
		"/console/sign-out/x?a=b": "/console/", "/console/records?x=1": "/console/records?x=1", "https://attacker.example/": "/console/", "//attacker.example/console/": "/console/",
		"/console//attacker.example": "/console/", "/v1/admin/check": "/console/", "": "/console/", "/console/\\attacker.example": "/console/",
	} {
		b := open(t)
		form := b.get("/console/sign-in?next=" + url.QueryEscape(next)).form("/console/sign-in")
		form.Set("name", "Kim")
		form.Set("token", adminToken)
		require.Equal(t, want, b.post("/console/sign-in", form).wants(http.StatusSeeOther).header.Get("Location"), next)
	}
}

func TestSession_CookieIsOnlyForTheServer(t *testing.T) {
	b := open(t)
	cookie := b.get("/console/sign-in").header.Get("Set-Cookie")
	require.Regexp(t, `^messagehub-session-[0-9]+=`, cookie)
	require.Contains(t, cookie, "HttpOnly")
	require.Contains(t, cookie, "SameSite=Strict")
	secure := open(t, func(o *console.Options, _ *api.Options) { o.IsSecure = true })
	cookie = secure.get("/console/sign-in").header.Get("Set-Cookie")
	require.Regexp(t, `^__Host-messagehub-session-[0-9]+=`, cookie)
	require.Contains(t, cookie, "; Secure")
	require.Contains(t, cookie, "Path=/;")
	require.NotContains(t, cookie, "Domain")
}

func TestSession_EndsWhenIdleAndAtItsMaximum(t *testing.T) {
	b := openSignedIn(t)
	b.clock.advance(console.SessionIdle - time.Minute)
	b.get("/console/").wants(http.StatusOK) // this request renews the session
	b.clock.advance(console.SessionIdle - time.Minute)
	b.get("/console/").wants(http.StatusOK)
	b.clock.advance(console.SessionIdle)
	b.get("/console/").wants(http.StatusSeeOther)

	b = openSignedIn(t)
	for elapsed := time.Duration(0); elapsed+10*time.Minute < console.SessionTime; elapsed += 10 * time.Minute {
		b.get("/console/").wants(http.StatusOK)
		b.clock.advance(10 * time.Minute)
	}
	b.clock.advance(10 * time.Minute)
	b.get("/console/").wants(http.StatusSeeOther)
}

func TestSession_EndsWithItsToken(t *testing.T) {
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) { o.SessionKey = "shared" })
	b.get("/console/").wants(http.StatusOK)
	other := open(t, func(o *console.Options, options *api.Options) {
		o.SessionKey = "shared"
		options.AdminToken = "another-token"
	})
	b.url = moveCookies(t, b, other)
	b.get("/console/").wants(http.StatusSeeOther)
}

func TestSession_IsSharedByNodesWithTheSameKey(t *testing.T) {
	b, same, different := openSignedIn(t), open(t), open(t, func(o *console.Options, _ *api.Options) { o.SessionKey = "" })
	moveCookies(t, b, same)
	same.get("/console/").wants(http.StatusOK)
	moveCookies(t, b, different)
	different.get("/console/").wants(http.StatusSeeOther)
}

func TestSession_OfAnotherHubOnTheMachineIsKept(t *testing.T) {
	first, second := openSignedIn(t), open(t)
	second.client.Jar = first.client.Jar // a cookie jar distinguishes hosts but not ports, as browsers do
	second.get("/console/").wants(http.StatusSeeOther)
	second.signIn()
	second.get("/console/").wants(http.StatusOK)
	first.get("/console/").wants(http.StatusOK)
	second.post("/console/sign-out", second.get("/console/").form("/console/sign-out")).wants(http.StatusSeeOther)
	second.get("/console/").wants(http.StatusSeeOther)
	first.get("/console/").wants(http.StatusOK)
}

func TestSession_CookieIsNamedAfterThePortOfTheBrowser(t *testing.T) {
	b := open(t)
	for host, want := range map[string]string{
		"hub.example": "messagehub-session=", "hub.example:8081": "messagehub-session-8081=", "[::1]:8081": "messagehub-session-8081=",
		"hub.example:": "messagehub-session=", "hub.example:99999": "messagehub-session=",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/console/sign-in", http.NoBody)
		require.NoError(t, err)
		r.Host = host
		response, err := b.newClient().Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.True(t, strings.HasPrefix(response.Header.Get("Set-Cookie"), want), "%s: %s", host, response.Header.Get("Set-Cookie"))
	}
}

// moveCookies copies the cookies of one browser to the hub of another, and returns the address of
// that hub.
func moveCookies(t *testing.T, from, to *browser) string {
	t.Helper()
	source, err := url.Parse(from.url)
	require.NoError(t, err)
	target, err := url.Parse(to.url)
	require.NoError(t, err)
	cookies := from.client.Jar.Cookies(source)
	for _, cookie := range cookies {
		cookie.Name = strings.TrimSuffix(cookie.Name, source.Port()) + target.Port()
	}
	from.client.Jar.SetCookies(target, cookies)
	to.client.Jar.SetCookies(target, cookies)
	return to.url
}

func TestSession_IsRefusedWhenItsCookieIsChanged(t *testing.T) {
	b := openSignedIn(t)
	at, err := url.Parse(b.url)
	require.NoError(t, err)
	cookie := b.client.Jar.Cookies(at)[0]
	for _, value := range []string{cookie.Value[:len(cookie.Value)-2] + "xx", "x", cookie.Value[1:]} {
		b.client.Jar.SetCookies(at, []*http.Cookie{{Name: cookie.Name, Value: value, Path: "/"}})
		b.get("/console/").wants(http.StatusSeeOther)
	}
	b.client.Jar.SetCookies(at, []*http.Cookie{{Name: cookie.Name, Value: cookie.Value, Path: "/"}})
	b.get("/console/").wants(http.StatusOK)
}

func TestSignOut_EndsTheSession(t *testing.T) {
	b := openSignedIn(t)
	form := b.get("/console/").form("/console/sign-out")
	b.post("/console/sign-out", form).wants(http.StatusSeeOther)
	b.get("/console/").wants(http.StatusSeeOther)
}

func TestAssets_AreKeptForeverAndCompressed(t *testing.T) {
	b := open(t)
	for _, name := range []string{"htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css", "console.css", "charts.js", "icon.svg"} {
		path := console.AssetPath(name)
		a := b.do(http.MethodGet, path, "", "Accept-Encoding", "identity").wants(http.StatusOK)
		require.Equal(t, "public, max-age=31536000, immutable", a.header.Get("Cache-Control"), name)
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"), name)
		require.Empty(t, a.header.Get("Content-Encoding"), name)
		packed := b.do(http.MethodGet, path, "", "Accept-Encoding", "gzip").wants(http.StatusOK)
		if name != "icon.svg" {
			require.Equal(t, "gzip", packed.header.Get("Content-Encoding"), name)
			require.Less(t, len(packed.body), len(a.body), name)
		}
		require.Equal(t, "Accept-Encoding", packed.header.Get("Vary"), name)
	}
	require.Equal(t, "no-store", b.get("/console/assets/console-0000000000000000.css").wants(http.StatusOK).header.Get("Cache-Control"), "of another version")
	b.get("/console/assets/nothing.js").wants(http.StatusNotFound)
	b.get("/console/assets/htmx.LICENSE").wants(http.StatusNotFound)
}
