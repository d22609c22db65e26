// The HTTP server of the JDK, with a page that is as long as server-configs/www/nginx/index.html: PORT=8080 java -Dsun.net.httpserver.nodelay=true Jvm.java.
// Its code is interpreted at first, and compiled by what it does.
import com.sun.net.httpserver.HttpServer;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

public class Jvm {
    private static final int BODY_BYTES = 612;

    public static void main(String[] args) throws Exception {
        byte[] body = (".".repeat(BODY_BYTES - 1) + "\n").getBytes(StandardCharsets.US_ASCII);
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 4096);
        server.createContext("/", exchange -> {
            exchange.getResponseHeaders().set("Content-Type", "text/html");
            exchange.sendResponseHeaders(200, body.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
    }
}
