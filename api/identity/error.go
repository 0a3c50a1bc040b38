package identity

// A Kind is the reason why the sender of a request could not be authenticated.
type Kind int

// The kinds of authentication errors.
const (
	Missing     Kind = iota // the request contains no token and no certificate
	Ambiguous               // the request contains more than one token, or a token in the wrong place
	Invalid                 // the token or the certificate is invalid
	Unavailable             // the keys of the issuer are unknown, because the issuer cannot be reached
)

// An Error is the reason why the sender of a request is unknown. It contains no text from the
// request.
type Error struct {
	Kind        Kind
	Description string // one or more sentences that tell the client what to do
}

func (e *Error) Error() string { return e.Description }

func invalidTokenError(description string) error { return &Error{Invalid, description} }

// Errors with a fixed text.
var (
	errMissing     = &Error{Missing, "The request shows no token. Send one as Authorization: Bearer TOKEN."}
	errTwice       = &Error{Ambiguous, "The request has more than one header Authorization; send one."}
	errInQuery     = &Error{Ambiguous, "A token in the query can be read in logs, so it is not accepted. Send it as Authorization: Bearer TOKEN, and replace the one that was sent."}
	errScheme      = &Error{Ambiguous, "The header Authorization contains no bearer token; send Authorization: Bearer TOKEN."}
	errTooLong     = invalidTokenError("The token is too long; ask the issuer for one with fewer claims.")
	errMalformed   = invalidTokenError("The token is not a signed JSON Web Token with RS256, PS256 or ES256; ask the issuer for an access token for this hub.")
	errIssuer      = invalidTokenError("This hub does not trust the issuer of the token; its setting oidc.issuer must be the claim iss exactly, with or without a slash at the end.")
	errAudience    = invalidTokenError("The token is for another audience; ask the issuer for one whose claim aud is the hub's setting oidc.audience.")
	errTenant      = invalidTokenError("The token is from a tenant that is not in the hub's setting oidc.tenants.")
	errSignature   = invalidTokenError("The signature of the token is not by a key of its issuer; ask the issuer for a new token.")
	errClaims      = invalidTokenError("A claim of the token has a wrong form: exp and nbf are numbers; roles are a list of texts; actors are actor ids.")
	errNoExpiry    = invalidTokenError("The token has no claim exp, so it would never expire; ask the issuer for one that expires.")
	errCertificate = invalidTokenError("The token is valid only together with its client certificate; connect with that certificate.")
	errStaleCert   = invalidTokenError("The client certificate has expired or is not valid yet; connect with a current one.")
	errUnavailable = &Error{Unavailable, "The hub cannot reach the issuer of the token, so it does not know the keys. Repeat the request after a pause."}
)
