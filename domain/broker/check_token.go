package broker

// CheckToken returns an Invalid error, which does not repeat the token, if no party can have it: a
// header has to hold it.
func CheckToken(token string) error { return checkToken(token) }
