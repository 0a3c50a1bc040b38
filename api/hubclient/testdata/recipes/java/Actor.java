// An actor in Java 17 or later, without packages: it consumes its bundles from the message hub.

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

public class Actor {
    private static final Duration TIMEOUT = Duration.ofSeconds(100); // for the beginning of an answer: longer than a hub waits for data
    private static final Duration MAX_RETRY_AFTER = Duration.ofMinutes(10);
    private static final long MAX_BUNDLE = 1L << 30; // bytes

    /** Handles a bundle. If it throws, the bundle is delivered again. */
    public interface Handler {
        void handle(String id, HttpHeaders headers, byte[] body) throws Exception;
    }

    /** Waits. */
    public interface Sleep {
        void sleep(Duration d) throws InterruptedException;
    }

    /** The hub refuses a request. The body is a problem document, which says why. */
    public static class Refused extends IOException {
        public final int status;
        public final Duration retryAfter;

        Refused(int status, HttpHeaders headers, String body) {
            super("the hub answered " + status + ": " + body);
            this.status = status;
            this.retryAfter = retryAfter(headers);
        }

        boolean isTemporary() {
            return Set.of(429, 502, 503, 504).contains(status);
        }
    }

    /** The body was not received to its end, or is that of another bundle. */
    public static class NotReceived extends IOException {
        NotReceived(String text) {
            super(text);
        }
    }

    public record Bundle(String id, HttpHeaders headers, byte[] body) {}

    private final HttpClient http = HttpClient.newHttpClient(); // follows no redirects: requests carry a token
    private final String url, name;
    private final Supplier<String> token;
    private final Sleep sleep;

    /** token returns the token of the actor; without one, the hub believes the name. */
    public Actor(String url, String name, Supplier<String> token, Sleep sleep) {
        this.url = url.replaceAll("/+$", "");
        this.name = name;
        this.token = token;
        this.sleep = sleep;
    }

    /** Returns the pause that an answer asks for. A date is compared with that of the answer. */
    static Duration retryAfter(HttpHeaders headers) {
        String text = headers.firstValue("Retry-After").orElse("");
        Duration pause = Duration.ZERO;
        if (text.matches("\\d{1,9}")) {
            pause = Duration.ofSeconds(Long.parseLong(text));
        } else {
            try {
                DateTimeFormatter format = DateTimeFormatter.RFC_1123_DATE_TIME;
                pause = Duration.between(ZonedDateTime.parse(headers.firstValue("Date").orElse(""), format), ZonedDateTime.parse(text, format));
            } catch (DateTimeParseException e) {
                return pause; // the hub sends none
            }
        }
        if (pause.isNegative()) return Duration.ZERO;
        return pause.compareTo(MAX_RETRY_AFTER) > 0 ? MAX_RETRY_AFTER : pause;
    }

    /** Sends a request once and returns the answer, whose body is read by the caller. */
    private HttpResponse<InputStream> call(String method, String path, String... headers) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path)).timeout(TIMEOUT)
            .method(method, HttpRequest.BodyPublishers.noBody()).header("X-Actor-Id", name);
        if (headers.length > 0) request.headers(headers);
        if (token != null) request.header("Authorization", "Bearer " + token.get());
        HttpResponse<InputStream> answer = http.send(request.build(), HttpResponse.BodyHandlers.ofInputStream());
        if (answer.statusCode() / 100 == 2) return answer;
        try (InputStream body = answer.body()) {
            throw new Refused(answer.statusCode(), answer.headers(), new String(body.readNBytes(1 << 20), StandardCharsets.UTF_8));
        }
    }

    /** Returns the next bundle, null if no data has come. An id that is not null is that of a bundle to be opened. */
    public Bundle peek(String id, int wait) throws IOException, InterruptedException {
        HttpResponse<InputStream> answer = call("GET", "/v1/peek?wait=" + wait + "s" + (id == null ? "" : "&bundleId=" + id));
        if (answer.statusCode() == 204) return null;
        String opened = answer.headers().firstValue("MessageId").orElseThrow(() -> new NotReceived("the answer is no bundle"));
        return new Bundle(opened, answer.headers(), receive(opened, answer));
    }

    /** Returns the whole body of a bundle: if the connection breaks, it fetches the rest of that bundle. */
    private byte[] receive(String id, HttpResponse<InputStream> answer) throws IOException, InterruptedException {
        String tag = answer.headers().firstValue("ETag").orElse("");
        long size = answer.headers().firstValueAsLong("Content-Length").orElse(-1);
        if (size < 0 || size > MAX_BUNDLE) throw new NotReceived("bundle " + id + " has " + size + " bytes");
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        readInto(body, answer);
        int failures = 0;
        for (Pauses pauses = new Pauses(5_000); body.size() < size; ) {
            sleep.sleep(pauses.next());
            int before = body.size();
            try {
                HttpResponse<InputStream> rest = call("GET", "/v1/bundles/" + id, "Range", "bytes=" + before + "-", "If-Range", tag);
                if (!rest.headers().firstValue("ETag").orElse("").equals(tag)) throw new NotReceived("the hub answered with another body");
                if (rest.statusCode() == 200) {
                    body.reset(); // the whole once more
                } else if (!rest.headers().firstValue("Content-Range").orElse("").startsWith("bytes " + before + "-")) {
                    throw new NotReceived("the hub answered with another part of the body");
                }
                readInto(body, rest);
            } catch (NotReceived e) {
                throw e;
            } catch (Refused e) {
                if (!e.isTemporary()) throw new NotReceived("the rest of the body cannot be fetched: " + e.getMessage());
                sleep.sleep(e.retryAfter);
            } catch (IOException e) {
                // no connection
            }
            failures = body.size() > before ? 0 : failures + 1;
            if (failures == 0) pauses.reset();
            if (failures > 10) throw new NotReceived("bundle " + id + " broke off after " + body.size() + " of " + size + " bytes");
        }
        return body.toByteArray();
    }

    /** Reads what arrives of an answer. */
    private static void readInto(ByteArrayOutputStream body, HttpResponse<InputStream> answer) {
        try (InputStream in = answer.body()) {
            in.transferTo(body);
        } catch (IOException e) {
            // the connection broke
        }
    }

    /**
     * Confirms a bundle that was handed out. isLost says that the answer to an earlier attempt was lost. It returns false if
     * another process of the actor has dequeued the bundle.
     */
    public boolean dequeue(String id, boolean isLost) throws IOException, InterruptedException {
        try {
            call("DELETE", "/v1/dequeue/" + id).body().close();
            return true;
        } catch (Refused e) {
            if (e.status != 404 && e.status != 410) throw e;
            return isLost; // then that attempt was it
        }
    }

    /**
     * Passes each bundle to a handler and dequeues it when that returns. A handler may get a bundle more than once, and skips
     * the events whose ids it has.
     */
    public void consume(Handler handler, BooleanSupplier isStopped) throws IOException, InterruptedException {
        String id = null, handled = null;
        boolean isOpen = false, isLost = false;
        Pauses pauses = new Pauses(60_000);
        while (!isStopped.getAsBoolean()) {
            try {
                if (handled == null) {
                    long began = System.nanoTime();
                    if (id == null) id = UUID.randomUUID().toString(); // a peek whose answer is lost is repeated for the same bundle
                    Bundle bundle = isOpen ? peek(null, 0) : peek(id, 30);
                    isOpen = false;
                    if (bundle == null) {
                        // At once: the hub is about to stop, or the bundle that was open is dequeued.
                        if (System.nanoTime() - began < Duration.ofSeconds(15).toNanos()) sleep.sleep(new Pauses(1_000).next());
                        continue;
                    }
                    id = bundle.id();
                    handler.handle(bundle.id(), bundle.headers(), bundle.body());
                    handled = id;
                    isLost = false;
                }
                dequeue(handled, isLost);
                id = handled = null;
                pauses.reset();
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) { // of the handler, too
                Refused refused = e instanceof Refused r ? r : null;
                if (refused != null && refused.status == 409 && handled == null) {
                    id = null; // another bundle is open, perhaps of a process that has ended: the next peek takes it
                    isOpen = true;
                    continue;
                }
                if (refused != null && refused.status == 409) {
                    handled = null; // its content was deleted, and made again, since it was fetched: fetch it again
                } else if (refused != null && !refused.isTemporary()) {
                    throw refused;
                }
                if (handled != null && (refused == null || refused.status >= 500)) isLost = true;
                System.err.println("the attempt is repeated: " + e);
                sleep.sleep(pauses.next().plus(refused == null ? Duration.ZERO : refused.retryAfter));
            }
        }
    }

    /** Pauses that grow up to a limit, and vary. */
    private static class Pauses {
        private final long limit;
        private long next = 100;

        Pauses(long limit) {
            this.limit = limit;
        }

        Duration next() {
            long pause = ThreadLocalRandom.current().nextLong(next / 2, next + 1);
            next = Math.min(2 * next, limit);
            return Duration.ofMillis(pause);
        }

        void reset() {
            next = 100;
        }
    }
}
