// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Threads, memory outside the Java heap, traps that the virtual machine handles itself, a child process. */
public class Smoke {
    private static int sum = 0;

    private static void work() {
        Map<Integer, String> words = new HashMap<>();
        for (int i = 0; i < 10000; i++) words.put(i, "word " + i);
        List<ByteBuffer> buffers = new ArrayList<>();
        for (int i = 0; i < 30; i++) buffers.add(ByteBuffer.allocateDirect(50000 + i).put(7, (byte) i));
        int found = words.size();
        for (ByteBuffer buffer : buffers) found += buffer.get(7);
        synchronized (Smoke.class) {
            sum += found;
        }
    }

    private static int deeper(int depth) {
        return deeper(depth + 1) + 1;
    }

    private static int traps() {
        String nothing = null;
        int caught = 0;
        for (int i = 0; i < 5000; i++) {
            try {
                caught -= nothing.length();
            } catch (NullPointerException e) {
                caught++;
            }
        }
        try {
            return deeper(0);
        } catch (StackOverflowError e) {
            return caught + 1;
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) threads.add(new Thread(Smoke::work));
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        int child = new ProcessBuilder("true").start().waitFor();
        System.out.println("sum " + sum + " traps " + traps() + " child " + child);
    }
}
