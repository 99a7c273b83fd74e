import java.time.Instant;
import java.time.temporal.ChronoUnit;

/** Predicts two orders with the generated class Late; the second order lacks all values. */
class Predict {
    static double countDays(String moment) {
        if (moment == null) return Double.NaN;
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.parse(moment)) / 86_400e6;
    }

    public static void main(String[] arguments) {
        double[][] orders = {
            {countDays("2026-09-14T09:30:00Z"), 12.5, Late.category(2, "NO")},
            {countDays(null), Double.NaN, Late.category(2, null)}
        };
        for (double[] order : orders) {
            double late = Late.predict(order)[0];
            System.out.println((late >= 0.5 ? "late " : "punctual ") + late);
        }
    }
}
